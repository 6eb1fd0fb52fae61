package main

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// checkVersion refuses a version that is not written as Go modules write theirs, or that does not
// come after the versions that are released.
func checkVersion(version string, released []string) error {
	if semver.Canonical(version) != version || version == "" {
		return fmt.Errorf("version %q: want the form v1.2.3 or v1.2.3-rc.1", version)
	}
	if major := semver.Major(version); major != "v0" && major != "v1" {
		return fmt.Errorf("version %s: from v2 on the paths of the modules end in the major version, and they do not end in /%s", version, major)
	}
	if last := latest(released); semver.Compare(version, last) <= 0 {
		return fmt.Errorf("version %s does not come after %s, which is released", version, last)
	}
	return nil
}

// latest returns the highest version, "" of none. Texts that are no versions do not count.
func latest(versions []string) string {
	valid := slices.DeleteFunc(slices.Clone(versions), func(v string) bool { return !semver.IsValid(v) })
	if len(valid) == 0 {
		return ""
	}
	return slices.MaxFunc(valid, semver.Compare)
}

// nextVersion returns the minor version after those that are released.
func nextVersion(released []string) string {
	last := latest(released)
	if last == "" {
		return "v0.1.0"
	}
	var major, minor int
	// Valid versions have this form.
	_, _ = fmt.Sscanf(strings.TrimPrefix(semver.MajorMinor(last), "v"), "%d.%d", &major, &minor)
	return fmt.Sprintf("v%d.%d.0", major, minor+1)
}
