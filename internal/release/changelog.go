package main

import (
	"errors"
	"regexp"
	"strings"
	"time"
)

const unreleased = "## [Unreleased]\n"

var heading = regexp.MustCompile(`(?m)^## \[(\d[^\]]*)\]`)

// changelog is the text of CHANGELOG.md.
type changelog string

// released returns the versions that have a section.
func (c changelog) released() (versions []string) {
	for _, m := range heading.FindAllStringSubmatch(string(c), -1) {
		versions = append(versions, "v"+m[1])
	}
	return versions
}

// empty reports whether there is nothing to release.
func (c changelog) empty() bool {
	_, after, _ := strings.Cut(string(c), unreleased)
	section, _, _ := strings.Cut(after, "\n## ")
	return !strings.Contains("\n"+section, "\n- ")
}

// release gives what is unreleased a version and a day, and begins a new section.
func (c changelog) release(version string, day time.Time) (changelog, error) {
	if strings.Count(string(c), unreleased) != 1 {
		return "", errors.New("CHANGELOG.md: want one heading `## [Unreleased]`")
	}
	if c.empty() {
		return "", errors.New("CHANGELOG.md: nothing under [Unreleased]; say there what users get")
	}
	section := unreleased + "\n## [" + strings.TrimPrefix(version, "v") + "] - " + day.Format(time.DateOnly) + "\n"
	return changelog(strings.Replace(string(c), unreleased, section, 1)), nil
}
