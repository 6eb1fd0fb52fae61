// Package text writes JSON of bounded size and depth, and measures how deep text of strangers
// nests.
package text

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// MostDepth is how deep values may nest.
const MostDepth = 500

// Writer writes JSON. The caller writes commas and colons as [Writer.Raw].
type Writer struct {
	most  int
	out   []byte
	depth int
	lossy string
}

// NewWriter makes a writer of at most so many bytes.
func NewWriter(most int) *Writer { return &Writer{most: most} }

// Err says whether the text has become too long. What takes no input for an element has to ask.
func (w *Writer) Err() error {
	if len(w.out) > w.most {
		return fmt.Errorf("it has more than %d bytes as JSON", w.most)
	}
	return nil
}

// Enter begins a value within another one, and Leave ends it.
func (w *Writer) Enter() error {
	if w.depth++; w.depth > MostDepth {
		return fmt.Errorf("it nests deeper than %d levels", MostDepth)
	}
	return w.Err()
}

// Leave ends what Enter began.
func (w *Writer) Leave() { w.depth-- }

// Text returns what was written.
func (w *Writer) Text() ([]byte, error) { return w.out, w.Err() }

// Lossy notes that JSON does not have all of the value, and why. The first reason counts.
func (w *Writer) Lossy(why string) {
	if w.lossy == "" {
		w.lossy = why
	}
}

// Whole says whether JSON has all of the value.
func (w *Writer) Whole() error {
	if w.lossy != "" {
		return errors.New(w.lossy)
	}
	return nil
}

// Raw writes text as it is.
func (w *Writer) Raw(s string) {
	if w.Err() == nil {
		w.out = append(w.out, s...)
	}
}

// Bool writes true or false.
func (w *Writer) Bool(b bool) { w.Raw(strconv.FormatBool(b)) }

// Int writes a number.
func (w *Writer) Int(n int64) { w.Raw(strconv.FormatInt(n, 10)) }

// Uint writes a number.
func (w *Writer) Uint(n uint64) { w.Raw(strconv.FormatUint(n, 10)) }

// Float writes a number of 32 or 64 bits, or "NaN", "Infinity" or "-Infinity".
func (w *Writer) Float(f float64, bits int) {
	switch {
	case math.IsNaN(f):
		w.Raw(`"NaN"`)
	case math.IsInf(f, 1):
		w.Raw(`"Infinity"`)
	case math.IsInf(f, -1):
		w.Raw(`"-Infinity"`)
	case f == 0 || math.Abs(f) >= 1e-6 && math.Abs(f) < 1e21:
		w.Raw(strconv.FormatFloat(f, 'f', -1, bits))
	default:
		w.Raw(strconv.FormatFloat(f, 'e', -1, bits))
	}
}

// Bytes writes bytes in base64.
func (w *Writer) Bytes(b []byte) {
	if w.Err() == nil {
		w.out = append(w.out, '"')
		w.out = base64.StdEncoding.AppendEncode(w.out, b)
		w.out = append(w.out, '"')
	}
}

// String writes text. Bytes that are no UTF-8 become U+FFFD, which is noted as a loss.
func (w *Writer) String(s string) {
	const hex = "0123456789abcdef"
	if w.Err() != nil {
		return
	}
	out := w.out
	out = append(out, '"')
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			w.Lossy("text of it is no UTF-8, and JSON can't keep that")
			out = append(out, "\ufffd"...)
		case r == '"' || r == '\\':
			out = append(out, '\\', s[i])
		case r == '\n':
			out = append(out, `\n`...)
		case r == '\t':
			out = append(out, `\t`...)
		case r == '\r':
			out = append(out, `\r`...)
		case r < ' ' || r == 0x7f:
			out = append(out, '\\', 'u', '0', '0', hex[s[i]>>4], hex[s[i]&15])
		default:
			out = append(out, s[i:i+n]...)
		}
		i += n
	}
	out = append(out, '"')
	w.out = out
}

// Member begins a member of an object.
func (w *Writer) Member(name string, first bool) {
	if !first {
		w.Raw(",")
	}
	w.String(name)
	w.Raw(":")
}
