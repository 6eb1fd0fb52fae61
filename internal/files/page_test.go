package main

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// A table that was copied from the code is wrong some day. So the page has what the tool writes.
func TestPage_IsAsTheCodeHasIt(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	want, err := page(string(text), os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	if want == string(text) {
		return
	}
	t.Error("docs/architecture.md is not as the code has it: run `go run ./internal/files`")
	has := strings.Split(string(text), "\n")
	for i, line := range strings.Split(want, "\n") {
		if i >= len(has) || has[i] != line {
			t.Fatalf("line %d becomes\n%s", i+1, line)
		}
	}
}

// tree has two folders, of which one is a module.
func tree() fstest.MapFS {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	return fstest.MapFS{
		"lane/doc.go":        file("// Package lane runs records. More.\npackage lane\n"),
		"lane/lane.go":       file("package lane\n\n// One file a task.\n\nimport _ \"fmt\"\n\n// lane is another.\ntype lane int\n"),
		"lane/lane_stop.go":  file("package lane\n\n// stop ends a lane.\nfunc (lane) stop() {}\n"),
		"lane/lane_test.go":  file("package lane\n\n// No row has this.\n"),
		"lane/feed.go":       file("package lane\n\n// feed is the intake\n// of a [lane].\ntype feed int\n"),
		"tool/go.mod":        file("module tool\n"),
		"tool/main.go":       file("// Tool prints a|b:\n//\n//\tgo run .\npackage main\n"),
		"docs/testdata/a.go": file("package a\n"),
		".cache/a.go":        file("package a\n"),
	}
}

func TestPage_HasARowForEachFamilyAndFolder(t *testing.T) {
	t.Parallel()
	got, err := page("# A\n\n<!-- files lane -->\nold\n<!-- end -->\n\n<!-- folders . -->\n<!-- end -->\n\nB\n", tree())
	if err != nil {
		t.Fatal(err)
	}
	want := "# A\n\n<!-- files lane -->\n\nRuns records.\n\n| family | for |\n|---|---|\n| `feed` | The intake of a lane |\n| `lane` | One file a task (`_stop`) |\n\n<!-- end -->\n\n" +
		"<!-- folders . -->\n\n| folder | for |\n|---|---|\n| `tool` | Prints a\\|b; a module of its own |\n\n<!-- end -->\n\nB\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestPage_RefusesAFolderOrFamilyWithoutASentence(t *testing.T) {
	t.Parallel()
	mute := tree()
	mute["lane/lane.go"] = &fstest.MapFile{Data: []byte("package lane\n\ntype lane int // inside\n")}
	for _, tt := range []struct {
		text string
		tree fstest.MapFS
		want string
	}{
		{"<!-- files lane -->\n<!-- end -->\n", tree(), "no table that takes the folder tool"},
		{"<!-- files none -->\n<!-- end -->\n", tree(), "a table for the folder none, which has no code"},
		{"<!-- files lane -->\n<!-- end -->\n<!-- folders . -->\n<!-- end -->\n", mute, "lane/lane.go has no comment"},
		{"<!-- folders . -->\n<!-- end -->\n", fstest.MapFS{"a/a.go": {Data: []byte("package a\n")}}, "a has no package comment"},
	} {
		if _, err := page(tt.text, tt.tree); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want %q in it", err, tt.want)
		}
	}
}
