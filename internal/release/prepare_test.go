package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var day = time.Date(2026, 11, 22, 20, 0, 0, 0, time.UTC)

// What is tagged has no replace directive where users would meet it, requires the release's own
// versions with their checksums, and can be installed. What main goes on with is built from one
// tree again.
func TestPrepare_MakesAReleaseThatCanBeInstalled(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	before := git(t, r, "rev-parse", "HEAD")
	var out bytes.Buffer
	if err := prepare(r, "v0.1.0", day, &out); err != nil {
		t.Fatal(err)
	}

	const tags = "cmd/lane/v0.1.0\nkit/v0.1.0\nv0.1.0"
	if got := git(t, r, "tag", "--list", "--points-at", "HEAD~1"); got != tags {
		t.Errorf("the release's commit has the tags\n%s\nwant\n%s", got, tags)
	}
	if got := git(t, r, "rev-parse", "HEAD~2"); got != before {
		t.Error("want two commits on what there was")
	}
	if got := git(t, r, "status", "--porcelain"); got != "" {
		t.Errorf("the checkout is left with\n%s", got)
	}
	for name, want := range map[string]string{
		"CHANGELOG.md": "# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-11-22\n\n### Added\n\n- A lane.\n",
		"go.mod":       tree["go.mod"],
		"kit/go.mod":   "module example.com/lane/kit\n\ngo 1.26.0\n\nrequire example.com/lane v0.1.0\n",
	} {
		if got := git(t, r, "show", "v0.1.0:"+name) + "\n"; got != want {
			t.Errorf("%s of the release:\n%s\nwant\n%s", name, got, want)
		}
	}
	if got := git(t, r, "show", "v0.1.0:cmd/lane/go.mod"); strings.Contains(got, "replace") || strings.Contains(got, "Built from") {
		t.Errorf("a released program has replace directives:\n%s", got)
	}
	for _, sum := range []string{"example.com/lane v0.1.0 h1:", "example.com/lane/kit v0.1.0 h1:"} {
		if got := git(t, r, "show", "v0.1.0:cmd/lane/go.sum"); !strings.Contains(got, sum) {
			t.Errorf("the program's go.sum has no %q:\n%s", sum, got)
		}
	}
	for _, dir := range []string{"examples/a", "internal/x"} {
		if got := git(t, r, "show", "v0.1.0:"+dir+"/go.mod"); !strings.Contains(got, "replace example.com/lane => ../..") {
			t.Errorf("%s, which nobody requires, has lost its replace directive:\n%s", dir, got)
		}
	}

	p := proxy{dir: t.TempDir(), root: "example.com/lane", cache: t.TempDir()}
	modules, err := readModules(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range published(modules) {
		if err := p.add(r, m, "v0.1.0", m.tag("v0.1.0")); err != nil {
			t.Fatal(err)
		}
	}
	outside := t.TempDir()
	for _, command := range []string{
		"go mod init example.com/service",
		"go get example.com/lane@v0.1.0", // and after it what lies beneath
		"go get example.com/lane/kit@v0.1.0",
		"go install example.com/lane/cmd/lane@v0.1.0",
	} {
		var log bytes.Buffer
		if err := p.execute(&log, outside, []string{"GOBIN=" + outside}, strings.Fields(command)...); err != nil {
			t.Errorf("%v\n%s", err, &log)
		}
	}

	// Afterwards: the trees before and after differ in the versions and the changelog alone.
	changed := git(t, r, "diff", "--name-only", before)
	if want := "CHANGELOG.md\ncmd/lane/go.mod\nexamples/a/go.mod\ninternal/x/go.mod\nkit/go.mod"; changed != want {
		t.Errorf("main goes on with changes to\n%s\nwant\n%s", changed, want)
	}
	want := strings.ReplaceAll(tree["cmd/lane/go.mod"], "v0.0.0", "v0.1.0")
	if got := git(t, r, "show", "HEAD:cmd/lane/go.mod") + "\n"; got != want {
		t.Errorf("main goes on with\n%s\nwant\n%s", got, want)
	}

	if want := "git push --atomic origin main v0.1.0 kit/v0.1.0 cmd/lane/v0.1.0\n"; !strings.Contains(out.String(), want) {
		t.Errorf("it prints\n%s\nwant a line with\n%s", &out, want)
	}
	_, undo, _ := strings.Cut(out.String(), "git tag -d")
	undo, _, _ = strings.Cut("git tag -d"+undo, "\n")
	cmd := exec.Command("sh", "-c", undo)
	cmd.Dir = string(r)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", undo, err, text)
	}
	if got := git(t, r, "rev-parse", "HEAD") + git(t, r, "tag"); got != before {
		t.Errorf("taken back, it leaves %q, want %q and no tag", got, before)
	}
}

// A second release comes after the first, and its modules require each other's second version.
func TestPrepare_NextReleaseFollows(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	if err := prepare(r, "v0.1.0", day, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	write(t, r, "CHANGELOG.md", strings.Replace(git(t, r, "show", "HEAD:CHANGELOG.md"), unreleased, unreleased+"\n- More.\n", 1))
	git(t, r, "commit", "-qam", "more")
	if err := prepare(r, "v0.2.0-rc.1", day, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	if got, want := git(t, r, "show", "kit/v0.2.0-rc.1:kit/go.mod"), "require example.com/lane v0.2.0-rc.1"; !strings.Contains(got, want) {
		t.Errorf("kit's go.mod:\n%s\nwant %s", got, want)
	}
}

// A hosted runner has one commit on no branch, no tags and nobody's name; a trial works there too.
func TestPrepare_WorksFromAShallowCheckout(t *testing.T) {
	t.Parallel()
	r, dir := newRepository(t), t.TempDir()
	write(t, r, "CHANGELOG.md", "## [Unreleased]\n\n## [0.3.0] - 2026-11-01\n\n- Old.\n")
	git(t, r, "commit", "-qam", "just released")
	shallow := repository(filepath.Join(dir, "shallow"))
	git(t, r, "clone", "-q", "--depth", "1", "--no-tags", fileURL(string(r)), string(shallow))
	git(t, shallow, "checkout", "-q", "--detach")
	copied, err := shallow.clone(filepath.Join(dir, "copy"))
	if err != nil {
		t.Fatal(err)
	}
	version, err := trial(copied, day)
	if want := "v0.4.0-trial.1795377600"; err != nil || version != want {
		t.Fatalf("the trial is %q, %v; want %s", version, err, want)
	}
	if err := prepare(copied, version, day, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	if got, want := git(t, copied, "tag"), "cmd/lane/"+version+"\nkit/"+version+"\n"+version; got != want {
		t.Errorf("tags\n%s\nwant\n%s", got, want)
	}
}

// What is refused, or fails on the way, changes no file, no branch and no tag.
func TestPrepare_RefusalChangesNothing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		version string
		spoil   func(t *testing.T, r repository)
		want    string
	}{
		"no v":          {"0.1.0", nil, `version "0.1.0": want the form v1.2.3`},
		"no version":    {"", nil, `version "": want the form v1.2.3`},
		"not complete":  {"v0.1", nil, "want the form v1.2.3"},
		"metadata":      {"v0.1.0+build", nil, "want the form v1.2.3"},
		"major":         {"v2.0.0", nil, "do not end in /v2"},
		"lower":         {"v0.1.0", func(t *testing.T, r repository) { git(t, r, "tag", "v0.2.0") }, "v0.1.0 does not come after v0.2.0"},
		"again":         {"v0.2.0", func(t *testing.T, r repository) { git(t, r, "tag", "v0.2.0") }, "v0.2.0 does not come after v0.2.0"},
		"a tag exists":  {"v0.1.0", func(t *testing.T, r repository) { git(t, r, "tag", "kit/v0.1.0") }, "the tag kit/v0.1.0 exists"},
		"another trunk": {"v0.1.0", func(t *testing.T, r repository) { git(t, r, "switch", "-qc", "fix") }, `on branch "fix"; releases are made of main`},
		"changed":       {"v0.1.0", func(t *testing.T, r repository) { write(t, r, "lane.go", "package lane\n") }, "not clean; commit or remove:\n M lane.go"},
		"untracked":     {"v0.1.0", func(t *testing.T, r repository) { write(t, r, "new.go", "package lane\n") }, "not clean; commit or remove:\n?? new.go"},
		"nothing new": {"v0.1.0", func(t *testing.T, r repository) {
			write(t, r, "CHANGELOG.md", "## [Unreleased]\n\n### Added\n\n## [0.0.1]\n\n- Old.\n")
			git(t, r, "commit", "-qam", "no entries")
		}, "CHANGELOG.md: nothing under [Unreleased]"},
		"no go.mod that go reads": {"v0.1.0", func(t *testing.T, r repository) {
			write(t, r, "kit/go.mod", "modul kit\n")
			git(t, r, "commit", "-qam", "broken")
		}, "kit/go.mod:1: unknown directive: modul"},
		"a package that is nowhere": {"v0.1.0", func(t *testing.T, r repository) {
			write(t, r, "kit/more.go", "package kit\n\nimport _ \"example.com/lane/gone\"\n")
			git(t, r, "add", "-A")
			git(t, r, "commit", "-qm", "broken")
		}, "kit: go mod tidy: exit status 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t)
			if tt.spoil != nil {
				tt.spoil(t, r)
			}
			before := state(t, r)
			err := prepare(r, tt.version, day, &bytes.Buffer{})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if after := state(t, r); after != before {
				t.Errorf("before:\n%s\nafter:\n%s", before, after)
			}
		})
	}
}

// state is all of a repository that a release changes.
func state(t *testing.T, r repository) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(string(r), "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	return git(t, r, "for-each-ref") + "\n" + git(t, r, "symbolic-ref", "HEAD") + "\n" + git(t, r, "status", "--porcelain") + "\n" + string(text)
}
