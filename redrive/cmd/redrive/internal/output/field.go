package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// A Field is a column of a list, or a line of an object, and what stands there.
type Field struct {
	// Key names the field in JSON, in camel case. It is a promise to scripts.
	Key string
	// Title heads the field in a table. Empty omits it there.
	Title string
	// Cell is what stands there: see [Look] for what tables make of it, and JSON.
	Cell any

	right, cut bool
	below      bool
	spare      int
	last       int
	least      int
	tone       Tone
}

// NewField returns a field by its key in JSON and its title in a table. Without a title only JSON
// shows it.
func NewField(key, title string, cell any) Field { return Field{Key: key, Title: title, Cell: cell} }

// Right aligns the column to the right, as numbers are.
func (f Field) Right() Field { f.right = true; return f }

// MayCut lets the column be cut where the terminal ends.
func (f Field) MayCut() Field { f.cut = true; return f }

// Spare lets a table do without the column where the terminal is too narrow for all columns. The
// column with the highest rank goes first. JSON has every column.
func (f Field) Spare(rank int) Field { f.spare = rank; return f }

// Last lets a table do without the column where lines are too long although all columns are cut.
// The column with the highest rank goes first.
func (f Field) Last(rank int) Field { f.last = rank; return f }

// Least makes the column of a list at least so wide where the terminal has room, since rows that
// are not known yet may need it.
func (f Field) Least(width int) Field { f.least = width; return f }

// Below puts the cell below its row of a table, without a title, if there is something in it. JSON
// has it as any other.
func (f Field) Below() Field { f.below, f.Title = true, ""; return f }

// Toned gives the cell a tone.
func (f Field) Toned(tone Tone) Field { f.tone = tone; return f }

// JSONObject is the fields as one JSON object on one line, in their order.
func JSONObject(fields ...Field) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	b.WriteByte('{')
	for i, f := range fields {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Quote(f.Key) + ":")
		if err := enc.Encode(value(f.Cell)); err != nil {
			return nil, fmt.Errorf("output: %s: %w", f.Key, err)
		}
		b.Truncate(b.Len() - 1) // the encoder ends with a line break
	}
	b.WriteByte('}')
	return escapeJSON(b.Bytes()), nil
}
