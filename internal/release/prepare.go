package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// trunk is the branch that releases are made of.
const trunk = "main"

// prepare commits and tags a release of all published modules, and then commits the go.mod files
// with which main goes on. It works in a copy and takes the result over at the end, so a refusal or
// a failure changes nothing. It pushes nothing.
func prepare(of repository, version string, day time.Time, out io.Writer) error {
	top, err := of.git("rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	of = repository(top)
	before, err := admit(of, version)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "siding-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	copied, err := of.clone(filepath.Join(work, "copy"))
	if err != nil {
		return err
	}
	r := release{of: copied, version: version, work: work}
	if r.modules, err = readModules(copied); err != nil {
		return err
	}
	if err := r.commit(day); err != nil {
		return err
	}
	if err := r.backToDevelopment(); err != nil {
		return err
	}
	if err := r.takeOver(of); err != nil {
		return err
	}
	tags := strings.Join(r.tags(), " ")
	fmt.Fprintf(out, `%s is prepared: commit %s and its tags are in this repository alone. Look at them, then publish with

    git push --atomic origin %s %s

or take them back with

    git tag -d %s && git reset --keep %s
`, version, r.tagged[:10], trunk, tags, tags, before[:10])
	return nil
}

// admit refuses what cannot be released, and returns the commit that can.
func admit(of repository, version string) (head string, err error) {
	if head, err = of.git("rev-parse", "HEAD"); err != nil {
		return "", err
	}
	tags, err := of.lines("tag", "--list")
	if err != nil {
		return "", err
	}
	if err := checkVersion(version, tags); err != nil {
		return "", err
	}
	modules, err := readModules(of)
	if err != nil {
		return "", err
	}
	for _, m := range published(modules) {
		if slices.Contains(tags, m.tag(version)) {
			return "", fmt.Errorf("the tag %s exists: choose a higher version", m.tag(version))
		}
	}
	branch, err := of.git("branch", "--show-current")
	if err != nil {
		return "", err
	}
	if branch != trunk {
		return "", fmt.Errorf("on branch %q; releases are made of %s", branch, trunk)
	}
	changed, err := of.lines("status", "--porcelain")
	if err != nil {
		return "", err
	}
	if len(changed) > 0 {
		return "", fmt.Errorf("the checkout is not clean; commit or remove:\n%s", strings.Join(changed, "\n"))
	}
	text, err := os.ReadFile(filepath.Join(string(of), "CHANGELOG.md"))
	if err != nil {
		return "", err
	}
	_, err = changelog(text).release(version, time.Time{})
	return head, err
}

// release is one that is being made, in a copy of the repository.
type release struct {
	of      repository
	version string
	work    string
	modules []*goModule // as they were before
	tagged  string      // the commit that has the tags
}

func (r *release) tags() (tags []string) {
	for _, m := range published(r.modules) {
		tags = append(tags, m.tag(r.version))
	}
	return tags
}

// commit makes the commit that users get. The go.sum of a module has the checksums of the modules
// that it requires, so each is packed before those that need it. None of what is written on the way
// belongs to a module that is packed already.
func (r *release) commit(day time.Time) error {
	file := filepath.Join(string(r.of), "CHANGELOG.md")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	released, err := changelog(text).release(r.version, day)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(released), 0o644); err != nil {
		return err
	}
	for _, m := range r.modules {
		if err := r.write(m, !m.isPublished()); err != nil {
			return err
		}
	}
	if err := r.of.all([]string{"commit", "-qam", "release: " + r.version}); err != nil {
		return err
	}
	p := proxy{dir: filepath.Join(r.work, "proxy"), root: r.modules[0].path, cache: filepath.Join(r.work, "cache")}
	for _, m := range published(r.modules) {
		if len(m.requires(r.modules)) > 0 {
			var log bytes.Buffer
			if err := p.execute(&log, filepath.Join(string(r.of), m.dir), nil, "go", "mod", "tidy"); err != nil {
				return fmt.Errorf("%s: %w\n%s", m.dir, err, log.Bytes())
			}
			if err := r.of.all([]string{"add", "-A"}, []string{"commit", "-q", "--amend", "--no-edit"}); err != nil {
				return err
			}
		}
		if err := p.add(r.of, m, r.version, "HEAD"); err != nil {
			return err
		}
	}
	if r.tagged, err = r.of.git("rev-parse", "HEAD"); err != nil {
		return err
	}
	for _, tag := range r.tags() {
		if _, err := r.of.git("tag", "-a", "-m", tag, tag); err != nil {
			return err
		}
	}
	return nil
}

// backToDevelopment commits the replace directives again, by which the modules are built from one
// tree.
func (r *release) backToDevelopment() error {
	for _, m := range r.modules {
		if err := r.write(m, true); err != nil {
			return err
		}
		sum := filepath.Join(string(r.of), m.dir, "go.sum")
		if m.sum == nil {
			if err := os.RemoveAll(sum); err != nil {
				return err
			}
		} else if err := os.WriteFile(sum, m.sum, 0o644); err != nil {
			return err
		}
	}
	const story = "release: the modules are built from this tree again\n\n" +
		"A released go.mod has no replace directives, and so its module is built with the released\n" +
		"versions of the others."
	return r.of.all([]string{"commit", "-qam", story})
}

func (r *release) write(m *goModule, replaced bool) error {
	text, err := m.at(r.version, r.modules, replaced)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(string(r.of), m.dir, "go.mod"), text, 0o644)
}

// takeOver brings the tags and the commits to the user's repository.
func (r *release) takeOver(into repository) error {
	head, err := r.of.git("rev-parse", "HEAD")
	if err != nil {
		return err
	}
	fetch := []string{"fetch", "-q", "--atomic", "--no-tags", string(r.of), trunk}
	for _, tag := range r.tags() {
		fetch = append(fetch, "refs/tags/"+tag+":refs/tags/"+tag)
	}
	if _, err := into.git(fetch...); err != nil {
		return err
	}
	if _, err := into.git("merge", "-q", "--ff-only", head); err != nil {
		_, undone := into.git(append([]string{"tag", "-d"}, r.tags()...)...)
		return errors.Join(err, undone)
	}
	return nil
}
