package main

import (
	"io"
	"slices"
	"strings"
	"testing"
)

const page = "Get it:\n\n" +
	"    go get example.com/lane            # the framework\n" +
	"    $ go install example.com/lane/cmd/lane@latest\n" +
	"    go get example.com/other\n\n" +
	"```go\nc, err := lane.New(handle)\nif err != nil { return err }\nreturn c.Run(ctx)\n```\n\n" +
	"```go\nkit.Run(t, handle)\n```\n"

// example has what the page takes for granted, and more.
const example = `package lane_test

import (
	"context"
	"errors"
	"os"
	stream "testing"

	"example.com/lane"
)

var errBusy, errOther = errors.New("busy"), errors.New("other")

func handle(context.Context) error { return errBusy }

func unused() { os.Exit(1) }

type T = stream.T
`

func TestReadme_CommandsAreTheRootsOnly(t *testing.T) {
	t.Parallel()
	got, err := readme(page).commands("example.com/lane")
	want := [][]string{{"go", "get", "example.com/lane"}, {"go", "install", "example.com/lane/cmd/lane@latest"}}
	if err != nil || !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if _, err := readme("Nothing here.").commands("example.com/lane"); err == nil {
		t.Error("a README that does not say how to get the modules is taken")
	}
}

// The README of siding gets each module that is published, and shows a service and its test.
func TestReadme_OfSidingCanBeFollowed(t *testing.T) {
	t.Parallel()
	modules, err := readModules("../..")
	if err != nil {
		t.Fatal(err)
	}
	u := user{tree: "../.."}
	text, err := u.read("README.md")
	if err != nil {
		t.Fatal(err)
	}
	commands, err := readme(text).commands(modules[0].path)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range published(modules) {
		if !slices.ContainsFunc(commands, func(c []string) bool {
			path, _, _ := strings.Cut(c[len(c)-1], "@")
			return path == m.path
		}) {
			t.Errorf("README.md does not say how to get %s; it has %q", m.path, commands)
		}
	}
	for _, f := range []readmeFile{service, unitTest} {
		if _, err := u.complete(f); err != nil {
			t.Error(err)
		}
	}
}

// Just what the block needs is added to it: no import that is not used, which would not compile.
func TestComplete_AddsWhatTheBlockTakesForGranted(t *testing.T) {
	t.Parallel()
	block, err := readme(page).block("lane.New(")
	if err != nil {
		t.Fatal(err)
	}
	got, err := complete(serviceAround, block, example)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`import "errors"`, `import "context"`, `import "example.com/lane"`, "func handle(", "errBusy, errOther ="} {
		if strings.Count(string(got), want) != 1 {
			t.Errorf("want %q once in\n%s", want, got)
		}
	}
	for _, other := range []string{`"os"`, "unused", "stream"} {
		if strings.Contains(string(got), other) {
			t.Errorf("%q is not needed in\n%s", other, got)
		}
	}
	whole, err := complete(serviceAround, "package main\n\nfunc main() {}\n", example)
	if err != nil || string(whole) != "package main\n\nfunc main() {}\n" {
		t.Errorf("a whole file became %q, %v", whole, err)
	}
}

func TestReadme_BlockThatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	if _, err := readme(page).block("kit.Start("); err == nil || !strings.Contains(err.Error(), "kit.Start(") {
		t.Errorf("error %v, want the name of the block that is missing", err)
	}
	if _, err := complete(serviceAround, "c, err := (", example); err == nil || !strings.Contains(err.Error(), "c, err := (") {
		t.Errorf("error %v, want the block that does not parse", err)
	}
}

// The README of a tagged release said that there was none.
func TestReadme_SaysNoReleaseYet(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	write(t, r, "README.md", "It has no\nrelease yet.\n")
	var problems strings.Builder
	if code := run([]string{"-C", string(r), "prepare", "v0.1.0"}, io.Discard, &problems); code != 1 || !strings.Contains(problems.String(), `README.md says "no release yet"`) {
		t.Errorf("code %d, %s", code, problems.String())
	}
	write(t, r, "README.md", "It has releases.\n")
	if err := admitReadme(r); err != nil {
		t.Error(err)
	}
}
