package output

import (
	"fmt"
	"io"
)

// A List is rows of the same fields, written while they come. Its methods are for one goroutine.
type List struct {
	out    io.Writer
	format Format
	look   Look
	table  *table // of Format Table
	rows   int
}

// Rows returns the number of rows so far.
func (l *List) Rows() int { return l.rows }

// Row writes one more row. All rows of a list have the same fields, but for their cells. Rows of a
// table wait for company: a page of 50 or 200 ms, whichever comes first.
func (l *List) Row(fields ...Field) error {
	l.rows++
	if l.table != nil {
		return l.table.add(fields, l.look)
	}
	line, err := JSONObject(fields...)
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

// Close ends the list. Without it the last rows are missing, whatever came before.
func (l *List) Close() error {
	end := ""
	switch {
	case l.table != nil:
		return l.table.flush()
	case l.format == JSON && l.rows == 0:
		end = "[]\n"
	case l.format == JSON:
		end = "\n]\n"
	}
	_, err := io.WriteString(l.out, end)
	return err
}

// Rows are a list within one thing: a field of [Screen.Object] that only JSON shows, as an array of
// objects, and [Screen.Tables] as a table of its own.
type Rows [][]Field

// RowsOf are the rows of several things, each with its fields.
func RowsOf[T any](things []T, fields func(T) []Field) Rows {
	rows := make(Rows, len(things))
	for i, thing := range things {
		rows[i] = fields(thing)
	}
	return rows
}

// MarshalJSON writes an array of objects.
func (r Rows) MarshalJSON() ([]byte, error) {
	b := []byte{'['}
	for i, fields := range r {
		if i > 0 {
			b = append(b, ',')
		}
		row, err := JSONObject(fields...)
		if err != nil {
			return nil, err
		}
		b = append(b, row...)
	}
	return append(b, ']'), nil
}
