package where

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/redact"
)

// Field is a header of a record, or a member of its value in JSON, by which letters are counted. It
// may be used by several goroutines.
type Field struct {
	header string
	path   []step // of the value; empty for a header
}

// step leads from a JSON value to one within it: by the name of a member, or by an index.
type step struct {
	name  string
	index int // -1 for a member
}

// ParseField reads header:name, or the path of a member: value.customer, value.items[0].sku,
// value["odd name"].
func ParseField(text string) (*Field, error) {
	if name, ok := strings.CutPrefix(text, "header:"); ok && name != "" && len(name) <= mostText {
		return &Field{header: name}, nil
	}
	rest, ok := strings.CutPrefix(text, "value")
	if !ok || rest == "" || len(text) > mostText {
		return nil, fmt.Errorf("%.100q is no field: give header:NAME, or a path such as value.customer or value.items[0].sku", text)
	}
	f := &Field{}
	for rest != "" {
		s, after, err := parseStep(rest)
		if err != nil {
			return nil, fmt.Errorf("%q at column %d: %w", text, len(text)-len(rest)+1, err)
		}
		f.path, rest = append(f.path, s), after
	}
	return f, nil
}

func parseStep(text string) (s step, rest string, err error) {
	if inner, ok := strings.CutPrefix(text, "["); ok {
		if quoted, err := strconv.QuotedPrefix(inner); err == nil {
			name, err := strconv.Unquote(quoted)
			rest, ok := strings.CutPrefix(inner[len(quoted):], "]")
			if err != nil || !ok {
				return s, "", errors.New("a ] is missing behind the name")
			}
			return step{name: name, index: -1}, rest, nil
		}
		digits, rest, ok := strings.Cut(inner, "]")
		n, err := strconv.ParseUint(digits, 10, 31)
		if !ok || err != nil {
			return s, "", errors.New(`an index such as [0] or a name such as ["odd name"] is expected here`)
		}
		return step{index: int(n)}, rest, nil
	}
	text, ok := strings.CutPrefix(text, ".")
	end := strings.IndexAny(text, ".[]\" \t\n")
	if end < 0 {
		end = len(text)
	}
	if !ok || end == 0 || end < len(text) && text[end] != '.' && text[end] != '[' {
		return s, "", errors.New(`a . and a name is expected here; a name with other characters is written as ["odd name"]`)
	}
	return step{name: text[:end], index: -1}, text[end:], nil
}

// Of returns the field of a letter as text: what is no text as JSON, what is no UTF-8 in hex. ok is
// false if the letter has none, or null. Of several headers of the name the last counts, as in
// expressions.
func (f *Field) Of(l *dlq.Letter) (text string, ok bool) {
	if len(f.path) == 0 {
		for key, value := range headers.Values(l.Record.Headers) {
			if key == f.header {
				text, ok = readable(value), value != nil
			}
		}
		return text, ok
	}
	if !json.Valid(l.Record.Value) {
		return "", false
	}
	d := json.NewDecoder(bytes.NewReader(l.Record.Value))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return "", false
	}
	for _, s := range f.path {
		if v, ok = s.from(v); !ok {
			return "", false
		}
	}
	switch v := v.(type) {
	case nil:
		return "", false
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	}
	b, err := json.Marshal(v)
	return string(b), err == nil
}

func (s *step) from(v any) (any, bool) {
	if s.index < 0 {
		m, _ := v.(map[string]any)
		v, ok := m[s.name]
		return v, ok
	}
	all, _ := v.([]any)
	if s.index >= len(all) {
		return nil, false
	}
	return all[s.index], true
}

func readable(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return fmt.Sprintf("0x%x", b)
}

// Count counts a letter by the field, as the letter is shown. hidden says that a part of its value
// is hidden.
func (f *Field) Count(shown *dlq.Letter, hidden bool, c *dlq.ValueCounts) {
	switch text, ok := f.Of(shown); {
	case ok && !strings.Contains(text, redact.Mark):
		c.Add(text)
	case ok, hidden && len(f.path) > 0 && !json.Valid(shown.Record.Value):
		c.AddHidden()
	default:
		c.AddWithout()
	}
}
