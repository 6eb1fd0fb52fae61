package deptest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

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
	if err != nil {
		t.Fatal(err)
	}
	var pages []string
	for _, m := range page.FindAllStringSubmatch(string(text), -1) {
		pages = append(pages, m[1])
	}
	named := slices.Clone(guides)
	err = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(file) != ".go" {
			return err
		}
		code, err := os.ReadFile(file)
		for _, m := range pointer.FindAllSubmatch(code, -1) {
			named = append(named, string(m[1]))
			if !slices.Contains(pages, string(m[1])) {
				t.Errorf("%s points to DESIGN.md, %q, which has no such page", file, m[1])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages {
		if !slices.Contains(named, p) {
			t.Errorf("no comment in the code points to DESIGN.md, %q: name it where its main type is", p)
		}
	}
}
