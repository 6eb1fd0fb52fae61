package deptest

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	section = regexp.MustCompile(`^### (\S+)/$`)
	cell    = regexp.MustCompile(`^\| (.*?) \|`)
	quoted  = regexp.MustCompile("`([^`]+)`")
)

// docs/architecture.md has a row for each folder with code. Where a folder has a section of its
// own, the section has a row for each family of its files, and no others.
func TestArchitecturePageNamesEachFile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	folders, sections := map[string]bool{}, map[string]map[string]bool{}
	var families map[string]bool // of the section
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			families = nil
		}
		if m := section.FindStringSubmatch(line); m != nil {
			families = map[string]bool{}
			folders[m[1]], sections[m[1]] = true, families
		}
		m := cell.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		for _, name := range quoted.FindAllStringSubmatch(m[1], -1) {
			if families == nil || strings.Contains(name[1], "/") {
				folders[name[1]] = true
			} else {
				families[name[1]] = true
			}
		}
	}
	unseen := map[string]bool{}
	for dir := range folders {
		unseen[dir] = true
	}
	for dir, named := range sections {
		for family := range named {
			unseen[path.Join(dir, family)] = true
		}
	}
	for dir := range readGraph(t) {
		if !folders[dir] {
			t.Errorf("docs/architecture.md has no row for the folder %s", dir)
		}
		delete(unseen, dir)
		if sections[dir] == nil {
			continue
		}
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			stem, isCode := strings.CutSuffix(filepath.Base(file), ".go")
			if strings.HasSuffix(stem, "_test") || stem == "doc" || !isCode {
				continue
			}
			family, _, _ := strings.Cut(stem, "_")
			if !sections[dir][family] {
				t.Errorf("docs/architecture.md, %s/: no row for the family %s", dir, family)
			}
			delete(unseen, path.Join(dir, family))
		}
	}
	for name := range unseen {
		t.Errorf("docs/architecture.md has a row for %s, which is not there", name)
	}
}
