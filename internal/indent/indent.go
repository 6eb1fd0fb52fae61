// Package indent sets JSON out over lines, within a bound.
package indent

import (
	"bytes"
	"encoding/json"
)

const (
	step  = "  "
	space = " \t\r\n"
)

// JSON sets JSON out over lines, each level two spaces further in. It returns false for what is no
// JSON, and for what would be longer than most bytes: indentation grows with the square of the
// depth. Then it has used no memory.
func JSON(src []byte, most int) (string, bool) {
	src = bytes.Trim(src, space)
	if !json.Valid(src) || length(src, most) > most {
		return "", false
	}
	var b bytes.Buffer
	b.Grow(length(src, most))
	if err := json.Indent(&b, src, "", step); err != nil {
		return "", false
	}
	return b.String(), true
}

// length returns the length of valid JSON as json.Indent sets it out, or one beyond most.
func length(src []byte, most int) (n int) {
	depth, quoted, escaped, opened := 0, false, false, false
	line := func() { n += 1 + depth*len(step) }
	for _, c := range src {
		switch {
		case quoted:
			n++
			quoted = escaped || c != '"'
			escaped = !escaped && c == '\\'
			continue
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			continue
		}
		closes := c == '}' || c == ']'
		if opened && !closes {
			depth++
			line()
		}
		switch {
		case closes && opened: // empty: it stays on its line
		case closes:
			depth--
			line()
		}
		opened = c == '{' || c == '['
		n++
		switch c {
		case '"':
			quoted = true
		case ',':
			line()
		case ':':
			n++
		}
		if n > most {
			return n
		}
	}
	return n
}
