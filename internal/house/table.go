package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The table of ceilings in docs/architecture.md stands between these lines.
const (
	page  = "docs/architecture.md"
	begin = "<!-- begin: go run ./internal/house -lower -->\n"
	end   = "<!-- end -->\n"
)

// ceilingsTable is the table of the packages whose largest cycle has a ceiling of its own.
func ceilingsTable(most ceilings) string {
	type row struct {
		folder string
		cycle  int
	}
	var rows []row
	for name, n := range most {
		if folder, ok := strings.CutSuffix(name, " "+cycleLines); ok {
			rows = append(rows, row{folder, n})
		}
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.cycle, a.cycle), cmp.Compare(a.folder, b.folder))
	})
	var text strings.Builder
	text.WriteString("| package | largest cycle of files, lines | references between files, upward | methods of a type | files that hold a type's methods |\n|---|---|---|---|---|\n")
	for _, r := range rows {
		cell := func(measure string) string {
			if n, ok := most.of(r.folder + " " + measure); ok {
				return fmt.Sprint(n)
			}
			return ""
		}
		fmt.Fprintf(&text, "| `%s` | %d | %s | %s | %s |\n", r.folder, r.cycle, cell(upward), cell(mostMethods), cell(filesOfMethods))
	}
	return text.String()
}

// withTable returns the page with today's table.
func withTable(dir string, most ceilings) (before, after []byte, err error) {
	before, err = os.ReadFile(filepath.Join(dir, page))
	if err != nil {
		return nil, nil, err
	}
	head, rest, ok := bytes.Cut(before, []byte(begin))
	_, tail, closed := bytes.Cut(rest, []byte(end))
	if !ok || !closed {
		return nil, nil, fmt.Errorf("%s has no lines %q and %q for the table of ceilings", page, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return before, slices.Concat(head, []byte(begin), []byte(ceilingsTable(most)), []byte(end), tail), nil
}

func writeTable(dir string, most ceilings) error {
	_, after, err := withTable(dir, most)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, page), after, 0o666)
}

func tableIsStale(dir string, most ceilings) (bool, error) {
	before, after, err := withTable(dir, most)
	return !bytes.Equal(before, after), err
}
