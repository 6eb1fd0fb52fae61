package output

import (
	"fmt"
	"io"
)

// A List is rows of the same columns, written while they come. Its methods are for one goroutine.
type List struct {
	out     io.Writer
	format  Format
	look    Look
	columns []Column
	table   *table // of Format Table
	rows    int
}

// Rows is how many were given so far.
func (l *List) Rows() int { return l.rows }

// Row writes one more row, with a cell for each column. Rows of a table wait for company: a page of 50 or 200 ms,
// whichever comes first.
func (l *List) Row(cells ...any) error {
	if len(cells) != len(l.columns) {
		return fmt.Errorf("output: %d cells for %d columns", len(cells), len(l.columns))
	}
	l.rows++
	if l.table != nil {
		var texts []string
		for i, c := range l.columns {
			if c.Title != "" {
				texts = append(texts, l.look.text(cells[i]))
			}
		}
		return l.table.add(texts)
	}
	line, err := object(l.columns, cells)
	if err != nil {
		return err
	}
	before, after := "", "\n"
	if l.format == JSON {
		before, after = ",\n  ", ""
		if l.rows == 1 {
			before = "[\n  "
		}
	}
	_, err = fmt.Fprintf(l.out, "%s%s%s", before, line, after)
	return err
}

// Close ends the list: it must be called, whatever came before, or the last rows are missing.
func (l *List) Close() error {
	switch {
	case l.table != nil:
		return l.table.flush()
	case l.format == JSON && l.rows == 0:
		_, err := io.WriteString(l.out, "[]\n")
		return err
	case l.format == JSON:
		_, err := io.WriteString(l.out, "\n]\n")
		return err
	}
	return nil
}
