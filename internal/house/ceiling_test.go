package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

func TestCeilings_OnlyFall(t *testing.T) {
	t.Parallel()
	before := ceilings{"README.md words": 10, "serve " + cycleLines: 900, "dlq " + cycleLines: 500, "gone": 3}
	got := measures{"README.md words": 12, "serve " + cycleLines: 800, "dlq " + cycleLines: 200, "new " + cycleLines: 700, "new " + upward: 1, "code lines": 9}
	want := ceilings{"README.md words": 10, "serve " + cycleLines: 800, "new " + cycleLines: 700}
	if low := before.lowered(got); !maps.Equal(low, want) {
		t.Errorf("lowered to %v, want %v", low, want)
	}
	again, err := parseCeilings(want.String())
	if err != nil || !maps.Equal(again, want) {
		t.Errorf("read back as %v (%v), want %v", again, err, want)
	}
	if _, err := parseCeilings("README.md words 10\n"); err == nil {
		t.Error("a line without a tab was read")
	}
}

// A ceiling that is raised in the file is found by the file's history.
func TestRaised_NamesWhatAnEarlierCommitHadLower(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	git := func(args ...string) {
		cmd := exec.Command("git", append([]string{"-c", "user.name=n", "-c", "user.email=n@example.com"}, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	commit := func(c ceilings) {
		must(t, os.WriteFile(filepath.Join(dir, ceilingsFile), []byte(c.String()), 0o666))
		git("add", "-A")
		git("commit", "-q", "-m", "ceilings")
	}
	must(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(ceilingsFile)), 0o777))
	git("init", "-q")
	commit(ceilings{"a": 5, "b": 5})
	commit(ceilings{"a": 3, "b": 5})
	if names := raised(dir, ceilings{"a": 3, "b": 5, "c": 9}); len(names) > 0 {
		t.Errorf("raised are %q, want none", names)
	}
	if names := raised(dir, ceilings{"a": 4, "b": 5}); !slices.Equal(names, []string{"a: 4, an earlier commit had 3"}) {
		t.Errorf("raised are %q, want a", names)
	}
	commit(ceilings{"a": 5, "b": 5})
	if names := raised(dir, ceilings{"a": 5, "b": 5}); len(names) != 1 {
		t.Errorf("raised are %q after the commit, want a", names)
	}
}

func TestReadDebt_NeedsAReasonAndADay(t *testing.T) {
	t.Parallel()
	for row, ok := range map[string]bool{
		"| serve " + cycleLines + " | 900 | the rooms come next | 2027-03-01 |":  true,
		"| serve " + cycleLines + " | 900 |  | 2027-03-01 |":                     false,
		"| serve " + cycleLines + " | 900 | the rooms come next | soon |":        false,
		"| serve " + cycleLines + " | many | the rooms come next | 2027-03-01 |": false,
	} {
		dir := t.TempDir()
		must(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(debtFile)), 0o777))
		text := "# Debt\n\n| measure | up to | reason | paid by |\n|---|---|---|---|\n" + row + "\n"
		must(t, os.WriteFile(filepath.Join(dir, debtFile), []byte(text), 0o666))
		debt, err := readDebt(dir)
		if (err == nil) != ok || ok && debt["serve "+cycleLines] != 900 {
			t.Errorf("%s: %v, %v", row, debt, err)
		}
	}
}
