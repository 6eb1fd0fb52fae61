package main

import (
	"os"
	"path/filepath"
	"testing"
)

// The modules of these tests are nowhere else, so nobody is asked for them.
func TestMain(m *testing.M) {
	if err := os.Setenv("GOPROXY", "off"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// tree is a small repository like siding's: a root, a program for users, a library that both the
// program's users and an example require, and a module for nobody.
var tree = map[string]string{
	"go.mod":             "module example.com/lane\n\ngo 1.26.0\n",
	"lane.go":            "package lane\n\nconst Name = \"lane\"\n",
	"LICENSE":            "as you like\n",
	"CHANGELOG.md":       "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A lane.\n",
	"cmd/lane/go.mod":    requiring("cmd/lane", "../..", "kit", "../../kit"),
	"cmd/lane/main.go":   "package main\n\nimport (\n\t\"example.com/lane\"\n\t\"example.com/lane/kit\"\n)\n\nfunc main() { println(lane.Name, kit.Name) }\n",
	"examples/a/go.mod":  requiring("examples/a", "../..", "kit", "../../kit"),
	"examples/a/main.go": "package main\n\nimport (\n\t\"example.com/lane\"\n\t\"example.com/lane/kit\"\n)\n\nfunc main() { println(lane.Name, kit.Name) }\n",
	"internal/x/go.mod":  requiring("internal/x", "../.."),
	"internal/x/x.go":    "package x\n\nimport \"example.com/lane\"\n\nconst Name = lane.Name\n",
	"kit/go.mod":         requiring("kit", ".."),
	"kit/kit.go":         "package kit\n\nimport \"example.com/lane\"\n\nconst Name = lane.Name\n",
}

// requiring is the go.mod of a module that requires the root, and others of the tree by pairs of
// name and folder.
func requiring(name, root string, others ...string) string {
	text := "module example.com/lane/" + name + "\n\ngo 1.26.0\n\nrequire example.com/lane v0.0.0\n"
	replace := "\n// Built from this tree.\nreplace example.com/lane => " + root + "\n"
	for i := 0; i < len(others); i += 2 {
		text += "\nrequire example.com/lane/" + others[i] + " v0.0.0\n"
		replace += "\nreplace example.com/lane/" + others[i] + " => " + others[i+1] + "\n"
	}
	return text + replace
}

// newRepository commits the tree.
func newRepository(t *testing.T) repository {
	t.Helper()
	r := repository(t.TempDir())
	for name, text := range tree {
		write(t, r, name, text)
	}
	if err := r.all(
		[]string{"init", "-q", "-b", trunk},
		[]string{"config", "user.name", "A Maintainer"},
		[]string{"config", "user.email", "maintainer@example.com"},
		[]string{"config", "commit.gpgSign", "false"},
		[]string{"config", "tag.gpgSign", "false"},
		[]string{"add", "-A"},
		[]string{"commit", "-q", "-m", "the tree"},
	); err != nil {
		t.Fatal(err)
	}
	return r
}

func write(t *testing.T, r repository, name, text string) {
	t.Helper()
	file := filepath.Join(string(r), name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func git(t *testing.T, r repository, args ...string) string {
	t.Helper()
	out, err := r.git(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
