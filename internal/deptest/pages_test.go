package deptest

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	trapRow  = regexp.MustCompile(`(?m)^\| ([0-9]+) \| \S`)
	trapLike = regexp.MustCompile(`(?m)^\s*// (?:Trap|Traps) [0-9].*$`)
	// A line that names a trap begins a comment, or follows another such line. The comment ends
	// above a test or an entry of the suite.
	trapOfTest = regexp.MustCompile(`(?m)(?:^\s*// Trap [0-9]+: \S.*\n)+(?:^\s*//.*\n)*(?:func (?:Test|Fuzz)\w*\(|\s*")`)
	trapNumber = regexp.MustCompile(`(?m)^\s*// Trap ([0-9]+): `)
)

// A trap into which others fell has a test that names it, and a test names no trap that the table
// of CONTRIBUTING.md lacks.
func TestTrapsHaveTests(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	must(t, err)
	tested := map[string]bool{}
	for _, row := range trapRow.FindAllSubmatch(text, -1) {
		tested[string(row[1])] = false
	}
	if len(tested) < 36 {
		t.Errorf("%d traps were found: is the test looking in the right place?", len(tested))
	}
	for file, text := range files(t) {
		if path.Ext(file) != ".go" {
			continue
		}
		named := 0
		for _, at := range trapOfTest.FindAllStringIndex(text, -1) {
			lines := strings.Split(strings.TrimSuffix(text[:at[0]], "\n"), "\n")
			if strings.HasPrefix(strings.TrimSpace(lines[len(lines)-1]), "//") {
				continue // in the middle of a comment
			}
			for _, n := range trapNumber.FindAllStringSubmatch(text[at[0]:at[1]], -1) {
				named++
				if _, ok := tested[n[1]]; !ok {
					t.Errorf("%s names trap %s, which CONTRIBUTING.md lacks", file, n[1])
				}
				tested[n[1]] = true
			}
		}
		if all := trapLike.FindAllString(text, -1); len(all) != named {
			t.Errorf("%s: of %d lines that name a trap, %d begin the comment of a test in the form \"Trap 13: …\": %s", file, len(all), named, all)
		}
	}
	for n, ok := range tested {
		if !ok {
			t.Errorf("trap %s has no test", n)
		}
	}
}

var (
	page    = regexp.MustCompile(`(?m)^## (.+)$`)
	pointer = regexp.MustCompile(`DESIGN\.md, "([^"]+)"`)
	// guides are the pages of DESIGN.md that are about no mechanism.
	guides = []string{
		"How to use this document", "A record's way", "A dead letter's way", "Prepared places",
	}
)

// A comment that points to a page of DESIGN.md names a page that is there, and each mechanism's
// page is named by a comment.
func TestDESIGNAndCodeNameEachOther(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "DESIGN.md"))
	must(t, err)
	var pages []string
	for _, m := range page.FindAllStringSubmatch(string(text), -1) {
		pages = append(pages, m[1])
	}
	named := slices.Clone(guides)
	for file, code := range files(t) {
		if path.Ext(file) != ".go" {
			continue
		}
		for _, m := range pointer.FindAllStringSubmatch(code, -1) {
			named = append(named, m[1])
			if !slices.Contains(pages, m[1]) {
				t.Errorf("%s points to DESIGN.md, %q, which has no such page", file, m[1])
			}
		}
	}
	for _, p := range pages {
		if !slices.Contains(named, p) {
			t.Errorf("no comment in the code points to DESIGN.md, %q: name it where its main type is", p)
		}
	}
}

var (
	exactlyOnce = regexp.MustCompile(`(?i)\bexactly[ -]once\b`)
	committed   = regexp.MustCompile(`(?i)\breads? committed\b`)
	atLeastOnce = regexp.MustCompile(`(?i)\bruns? at least once\b`)
	denied      = regexp.MustCompile(`(?i)\bno exactly-once\b`)
)

// A reader takes "exactly once" for a promise about the handler. So where it stands, the paragraph
// says for whom it holds (consumers that read committed) and that the handler runs at least once;
// or it says that there is no such thing. This holds for documents, comments and what programs
// print.
func TestPromiseOfExactlyOnceIsQualified(t *testing.T) {
	t.Parallel()
	promises := 0
	for file, text := range files(t) {
		if ext := path.Ext(file); ext != ".go" && ext != ".md" || file == "internal/deptest/pages_test.go" {
			continue
		}
		for _, p := range paragraphs(text) {
			if !exactlyOnce.MatchString(p) {
				continue
			}
			promises++
			if !denied.MatchString(p) && !(committed.MatchString(p) && atLeastOnce.MatchString(p)) {
				t.Errorf("%s promises \"exactly once\" without \"for consumers that read committed; the handler runs at least once\":\n%s", file, p)
			}
		}
	}
	if promises == 0 {
		t.Error("no promise was found: is the test looking in the right place?")
	}
}

// paragraphs splits a text at empty lines, list items, table rows and between code and comments.
// The lines of a paragraph are joined.
func paragraphs(text string) (all []string) {
	var words []string
	end := func() {
		if len(words) > 0 {
			all = append(all, strings.Join(words, " "))
		}
		words = nil
	}
	comment := false
	for line := range strings.Lines(text) {
		rest, commented := strings.CutPrefix(strings.TrimSpace(line), "//")
		rest = strings.TrimSpace(rest)
		if rest == "" || commented != comment || strings.HasPrefix(rest, "- ") || strings.HasPrefix(rest, "|") {
			end()
		}
		comment = commented
		words = append(words, strings.Fields(rest)...)
	}
	end()
	return all
}

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
	must(t, err)
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
	for file, text := range files(t) {
		switch {
		case path.Dir(file) == "internal/suite":
			names = append(names, suiteTests(text)...)
		case strings.HasSuffix(file, "_test.go"):
			for _, m := range testFunc.FindAllStringSubmatch(text, -1) {
				names = append(names, m[1])
			}
		}
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
