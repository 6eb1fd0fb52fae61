package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A dear test is left out if others reach the same for less; a test that alone reaches a block
// remains, and so do cheap tests and those of an interleaving.
func TestChoose_LeavesOutWhatOthersReach(t *testing.T) {
	t.Parallel()
	of := func(test string, cpu time.Duration, reached ...string) measured {
		m := measured{folder: "p", test: test, cpu: cpu}
		for _, text := range reached {
			m.blocks = append(m.blocks, block{text: text})
		}
		return m
	}
	left, targets, err := choose([]measured{
		of("TestDear", 9*time.Second, "a", "b", "c"),
		of("TestFirst", time.Second, "a", "e"),
		of("TestOnly", 8*time.Second, "d"),
		of("TestSecond", time.Second, "b", "c"),
		of("TestLane_Revoked", 7*time.Second, "a"),
		of("TestCheap", cheap, "a"),
	}, func(b block) (string, error) { return b.text, nil })
	if err != nil {
		t.Fatal(err)
	}
	if targets != 5 || len(left) != 1 || left[0].test != "TestDear" {
		t.Errorf("left out %v with %d targets, want TestDear with 5", left, targets)
	}
}

// Each block counts where goroutines can meet, in other functions one.
func TestCode_TellsWhereGoroutinesMeet(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source := `package p

type shared struct{ mu sync.Mutex }

func (s *shared) method() {
}

func sends(c chan int) {
	c <- 1
}

func adds(a, b int) int {
	return a + b
}
`
	if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	of := code{root: dir, files: map[string]file{}}
	for line, want := range map[string]string{
		module + "p.go:5.27,6.2 0 1":   module + "p.go:5.27,6.2",
		module + "p.go:8.24,10.2 1 3":  module + "p.go:8.24,10.2",
		module + "p.go:12.25,14.2 1 1": "p.go:12",
	} {
		b, err := parseBlock(line)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := of.target(b); got != want || err != nil {
			t.Errorf("target of %s: %s, %v, want %s", line, got, err, want)
		}
	}
	if _, err := parseBlock("p.go"); err == nil {
		t.Error("a line without a position was taken")
	}
}

// What the list leaves out exists: a test that has another name now runs.
func TestRun_ListsTestsThatExist(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../.ci/left-out")
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string]string{}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, line := range lines {
		folder, test, _ := strings.Cut(line, " ")
		if _, ok := sources[folder]; !ok {
			files, _ := filepath.Glob(filepath.Join("../..", folder, "*_test.go"))
			for _, name := range files {
				source, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				sources[folder] += string(source)
			}
		}
		if !strings.Contains(sources[folder], "\nfunc "+test+"(") {
			t.Errorf("%s has no %s: drop its line from .ci/left-out", folder, test)
		}
	}
	if !slices.IsSorted(lines) {
		t.Error(".ci/left-out is not sorted")
	}
}
