package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// block is a generated part of the page. `files` stands for a table of the families of one folder,
// `folders` for one of all folders below those that it names. A folder is in the first table that
// takes it.
var block = regexp.MustCompile(`(?ms)^<!-- (files|folders) (.*?) -->\n.*?^<!-- end -->$`)

// page returns the text with the tables as the code has them now. Each folder of the tree has to
// have a place in one of them, and each family and folder a sentence.
func page(text string, tree fs.FS) (string, error) {
	folders, err := readTree(tree)
	if err != nil {
		return "", err
	}
	var problems []error
	left := maps.Clone(folders)
	for _, m := range block.FindAllStringSubmatch(text, -1) {
		if m[1] == "files" {
			delete(left, m[2])
		}
	}
	text = block.ReplaceAllStringFunc(text, func(old string) string {
		m := block.FindStringSubmatch(old)
		var lines []string
		if m[1] == "files" {
			f := folders[m[2]]
			if f == nil {
				problems = append(problems, fmt.Errorf("docs/architecture.md has a table for the folder %s, which has no code", m[2]))
				return old
			}
			lines = f.table()
			problems = append(problems, f.problems(true)...)
		} else {
			lines = []string{"| folder | for |", "|---|---|"}
			for _, dir := range slices.Sorted(maps.Keys(left)) {
				if !slices.ContainsFunc(strings.Fields(m[2]), func(top string) bool { return below(dir, top) }) {
					continue
				}
				lines = append(lines, row(dir, left[dir].text()))
				problems = append(problems, left[dir].problems(false)...)
				delete(left, dir)
			}
		}
		return fmt.Sprintf("<!-- %s %s -->\n\n%s\n\n<!-- end -->", m[1], m[2], strings.Join(lines, "\n"))
	})
	for _, dir := range slices.Sorted(maps.Keys(left)) {
		problems = append(problems, fmt.Errorf("docs/architecture.md has no table that takes the folder %s", dir))
	}
	return text, errors.Join(problems...)
}

func below(dir, top string) bool {
	return top == "." || dir == top || strings.HasPrefix(dir, top+"/")
}

func row(name, purpose string) string {
	return fmt.Sprintf("| `%s` | %s |", name, strings.ReplaceAll(purpose, "|", `\|`))
}
