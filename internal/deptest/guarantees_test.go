package deptest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	quoted     = regexp.MustCompile("`([^`]+)`")
	testFunc   = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w*)\(\w+ \*testing\.[TF]\)`)
	suitePart  = regexp.MustCompile(`^var (\w+) = map\[string\]func\(\*testing\.T, \*fixture\)\{`)
	suiteEntry = regexp.MustCompile(`^\t"(.+?)":`)
)

// A promise whose test was renamed or deleted is held by no test any more. So each row of
// docs/guarantees.md names tests, and each test that it names is there.
func TestGuaranteesNameTestsThatExist(t *testing.T) {
	t.Parallel()
	tests := testsOfTheTree(t)
	text, err := os.ReadFile(filepath.Join(root, "docs", "guarantees.md"))
	if err != nil {
		t.Fatal(err)
	}
	promises := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if !strings.HasPrefix(line, "| **") {
			continue
		}
		promises++
		if len(cells) < 3 {
			t.Fatalf("a row has %d cells: %s", len(cells), line)
		}
		named := quoted.FindAllStringSubmatch(cells[2], -1)
		if len(named) == 0 {
			t.Errorf("no test proves %s", cells[0])
		}
		for _, name := range named {
			if !slices.Contains(tests, name[1]) {
				t.Errorf("there is no test %q, which is to prove %s", name[1], cells[0])
			}
		}
	}
	if promises < 20 {
		t.Errorf("%d promises were found: is the test looking in the right place?", promises)
	}
}

// testsOfTheTree returns the tests and fuzz targets of all modules, and those of the suite as
// "part/promise".
func testsOfTheTree(t *testing.T) (names []string) {
	t.Helper()
	suite := filepath.Join(root, "internal", "suite")
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2:
			return fs.SkipDir
		case d.IsDir(), !strings.HasSuffix(file, "_test.go") && filepath.Dir(file) != suite:
			return nil
		}
		text, err := os.ReadFile(file)
		for _, m := range testFunc.FindAllSubmatch(text, -1) {
			names = append(names, string(m[1]))
		}
		if filepath.Dir(file) == suite {
			names = append(names, suiteTests(string(text))...)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// suiteTests returns the tests that a file of the suite declares.
func suiteTests(text string) (names []string) {
	part := ""
	for line := range strings.Lines(text) {
		if m := suitePart.FindStringSubmatch(line); m != nil {
			part = m[1]
		}
		if strings.HasPrefix(line, "}") {
			part = ""
		}
		if m := suiteEntry.FindStringSubmatch(line); m != nil && part != "" {
			names = append(names, part+"/"+m[1])
		}
	}
	return names
}
