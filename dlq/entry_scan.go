package dlq

import (
	"encoding/json"
	"errors"
	"strings"
)

// scanEntry reads the JSON of an entry, and ignores unknown fields. Each command about a ledger
// reads all its entries, possibly millions. Nearly every value is a text without escapes, which the
// scan takes unchanged. It leaves other values to encoding/json, which takes six times as long for
// a whole entry.
//
// A value of the wrong type is an error, but the other fields are read. If the text is not JSON, no
// field is.
func scanEntry(s string) (entryJSON, error) {
	f := fieldScanner{rest: s}
	if !f.take('{') {
		return entryJSON{}, json.Unmarshal([]byte(s), &entryJSON{})
	}
	for more := !f.take('}'); more && !f.broken; {
		f.field()
		if more = f.take(','); !more {
			f.must('}')
		}
	}
	if f.space(); f.broken || f.rest != "" {
		// The error of encoding/json names the fault and its place.
		return entryJSON{}, json.Unmarshal([]byte(s), &json.RawMessage{})
	}
	return f.entry, f.err
}

// entryJSON has the fields of an entry's JSON: version 1, and the states that came later.
type entryJSON struct {
	V, Epochs     int
	TopicID       string
	State         State
	Run           string
	At, Since     string
	By, Why       string
	Target, Class string
	Edited        []string
}

// fieldScanner reads the fields of an entry, one after another.
type fieldScanner struct {
	entry  entryJSON
	name   string // of the current field
	rest   string
	broken bool  // the text is not JSON
	err    error // of the first value of a wrong type
}

func (f *fieldScanner) field() {
	if f.space(); !strings.HasPrefix(f.rest, `"`) {
		f.broken = true
		return
	}
	f.text(&f.name)
	if f.must(':'); f.broken {
		return
	}
	j := &f.entry
	switch f.name {
	case "v":
		f.number(&j.V)
	case "epochs":
		f.number(&j.Epochs)
	case "topicId":
		f.text(&j.TopicID)
	case "state":
		f.text((*string)(&j.State))
	case "run":
		f.text(&j.Run)
	case "at":
		f.text(&j.At)
	case "since":
		f.text(&j.Since)
	case "by":
		f.text(&j.By)
	case "why":
		f.text(&j.Why)
	case "target":
		f.text(&j.Target)
	case "class":
		f.text(&j.Class)
	case "edited":
		j.Edited = value(f, j.Edited)
	default:
		value(f, json.RawMessage{})
	}
}

// text reads a text.
func (f *fieldScanner) text(to *string) {
	if f.space(); strings.HasPrefix(f.rest, `"`) {
		if end := strings.IndexByte(f.rest[1:], '"'); end >= 0 && plain(f.rest[1:1+end]) {
			*to, f.rest = f.rest[1:1+end], f.rest[2+end:]
			return
		}
	}
	*to = value(f, *to)
}

// number reads a number, which as a rule has a few digits.
func (f *fieldScanner) number(to *int) {
	n, i, s := 0, 0, f.rest
	for ; i < len(s) && i < 9 && s[i] >= '0' && s[i] <= '9'; i++ {
		n = 10*n + int(s[i]-'0')
	}
	if i > 0 && i < len(s) && (s[0] != '0' || i == 1) && (s[i] == ',' || s[i] == '}') {
		*to, f.rest = n, s[i:]
		return
	}
	*to = value(f, *to)
}

// value reads any value, as encoding/json does into was: null leaves was unchanged.
func value[T any](f *fieldScanner, was T) T {
	d := json.NewDecoder(strings.NewReader(f.rest))
	err := d.Decode(&was)
	if _, other := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !other {
		f.broken = true
		return was
	}
	if f.err == nil {
		f.err = err
	}
	f.rest = f.rest[d.InputOffset():]
	return was
}

// take skips a character, if it is the next one.
func (f *fieldScanner) take(c byte) bool {
	if f.space(); f.rest == "" || f.rest[0] != c {
		return false
	}
	f.rest = f.rest[1:]
	return true
}

// must takes a character without which the text is not JSON.
func (f *fieldScanner) must(c byte) { f.broken = !f.take(c) || f.broken }

func (f *fieldScanner) space() {
	if f.rest != "" && f.rest[0] <= ' ' {
		f.rest = strings.TrimLeft(f.rest, " \t\r\n")
	}
}

// plain reports whether a text needs no escapes in JSON.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}
