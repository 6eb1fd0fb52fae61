package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRun_WritesThePage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "docs", "architecture.md")
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(name, "<!-- folders . -->\n<!-- end -->\n")
	var problems bytes.Buffer
	if code := run([]string{"-C", dir}, &problems); code != 0 {
		t.Fatalf("exit code %d: %s", code, &problems)
	}
	write(filepath.Join(dir, "lane", "lane.go"), "// Package lane runs records.\npackage lane\n")
	if code := run([]string{"-C", dir}, &problems); code != 0 {
		t.Fatalf("exit code %d: %s", code, &problems)
	}
	if text, err := os.ReadFile(name); err != nil || !strings.Contains(string(text), "| `lane` | Runs records |") {
		t.Errorf("the page has %q, %v", text, err)
	}
	write(filepath.Join(dir, "feed", "feed.go"), "package feed\n")
	if code := run([]string{"-C", dir}, &problems); code != 1 || !strings.Contains(problems.String(), "feed has no package comment") {
		t.Errorf("exit code %d, problems %q", code, &problems)
	}
}
