package deptest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
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
	if err != nil {
		t.Fatal(err)
	}
	tested := map[string]bool{}
	for _, row := range trapRow.FindAllSubmatch(text, -1) {
		tested[string(row[1])] = false
	}
	if len(tested) < 36 {
		t.Errorf("%d traps were found: is the test looking in the right place?", len(tested))
	}
	err = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && file != root:
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(file, ".go"):
			return nil
		}
		text, err := os.ReadFile(file)
		named := 0
		for _, at := range trapOfTest.FindAllIndex(text, -1) {
			lines := strings.Split(strings.TrimSuffix(string(text[:at[0]]), "\n"), "\n")
			if strings.HasPrefix(strings.TrimSpace(lines[len(lines)-1]), "//") {
				continue // in the middle of a comment
			}
			for _, n := range trapNumber.FindAllSubmatch(text[at[0]:at[1]], -1) {
				named++
				if _, ok := tested[string(n[1])]; !ok {
					t.Errorf("%s names trap %s, which CONTRIBUTING.md lacks", file, n[1])
				}
				tested[string(n[1])] = true
			}
		}
		if all := trapLike.FindAll(text, -1); len(all) != named {
			t.Errorf("%s: of %d lines that name a trap, %d begin the comment of a test in the form \"Trap 13: …\": %s", file, len(all), named, all)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for n, ok := range tested {
		if !ok {
			t.Errorf("trap %s has no test", n)
		}
	}
}
