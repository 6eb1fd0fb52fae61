package reserved

import (
	"bytes"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Field is a field of dlq-meta: "name=value;". Its name is at most 16 characters long, and its
// value has no semicolon. So a reader passes on the fields that it does not know.
type Field struct {
	Key   Key    // User if this version does not know the name
	Text  []byte // the whole field
	Value []byte // see [Unescape]
}

// fieldNames are the keys whose values are fields of dlq-meta. Each other key has a header of its
// own. Until dlq-meta came, each of these had one too, which is still read.
var fieldNames = [Count]string{
	OriginalTopicID:    "id",
	OriginalTimestamp:  "ts",
	ErrorFingerprint:   "fp",
	Hops:               "hops",
	FirstFailedAt:      "first",
	TraceParent:        "trace",
	ConsumerVersion:    "version",
	Environment:        "env",
	Host:               "host",
	Held:               "held",
	ValueOmitted:       "omitted",
	RedriveID:          "run",
	RedriveCount:       "runs",
	RedriveFrom:        "from",
	RedriveOriginal:    "origin",
	RedriveMaxAttempts: "max",
	RedriveAt:          "sent",
	History:            "history",
}

// FieldName returns the name of the key's field; it is empty if the key has a header of its own.
func (k Key) FieldName() string { return fieldNames[k] }

// fieldOf returns the key of a field. A name is a switch's case here, since a map costs more.
func fieldOf(name []byte) Key {
	switch string(name) {
	case "id":
		return OriginalTopicID
	case "ts":
		return OriginalTimestamp
	case "fp":
		return ErrorFingerprint
	case "hops":
		return Hops
	case "first":
		return FirstFailedAt
	case "trace":
		return TraceParent
	case "version":
		return ConsumerVersion
	case "env":
		return Environment
	case "host":
		return Host
	case "held":
		return Held
	case "omitted":
		return ValueOmitted
	case "run":
		return RedriveID
	case "runs":
		return RedriveCount
	case "from":
		return RedriveFrom
	case "origin":
		return RedriveOriginal
	case "max":
		return RedriveMaxAttempts
	case "sent":
		return RedriveAt
	case "history":
		return History
	}
	return User
}

const maxFieldName = 16

// NextField cuts the first field off a text. ok is false if the text does not begin with a field.
func NextField(text []byte) (f Field, rest []byte, ok bool) {
	is := bytes.IndexByte(text[:min(len(text), maxFieldName+1)], '=')
	end := bytes.IndexByte(text, ';')
	if is <= 0 || end < is {
		return Field{}, text, false
	}
	return Field{Key: fieldOf(text[:is]), Text: text[:end+1], Value: text[is+1 : end]}, text[end+1:], true
}

// AppendField appends a field with a text as its value: semicolons, percent signs, and all that is
// no printable ASCII are percent-encoded. The percent signs of a history stay: they are its own.
func AppendField[T string | []byte](to []byte, k Key, value T) []byte {
	to = BeginField(to, k)
	for i := range len(value) {
		if c := value[i]; c != '%' || k != History {
			to = AppendEscaped(to, c)
		} else {
			to = append(to, c)
		}
	}
	return append(to, ';')
}

// BeginField appends the name of a field and its equals sign.
func BeginField(to []byte, k Key) []byte { return append(append(to, fieldNames[k]...), '=') }

// AppendEscaped appends a byte in the form of a field's value.
func AppendEscaped(to []byte, c byte) []byte {
	if c < ' ' || c > '~' || c == ';' || c == '%' {
		return AppendPercent(to, c)
	}
	return append(to, c)
}

// AppendPercent appends a byte percent-encoded.
func AppendPercent(to []byte, c byte) []byte {
	const digits = "0123456789ABCDEF"
	return append(to, '%', digits[c>>4], digits[c&15])
}

// Unescape returns the text of a field's value, in new memory if it has a percent sign. One without
// two hex digits stands for itself, since another program may have written it.
func Unescape(value []byte) []byte {
	if bytes.IndexByte(value, '%') < 0 {
		return value
	}
	return AppendUnescaped(make([]byte, 0, len(value)), value)
}

// AppendUnescaped appends the text of a field's value.
func AppendUnescaped[T string | []byte](to []byte, value T) []byte {
	for i := 0; i < len(value); i++ {
		if value[i] == '%' && i+2 < len(value) {
			if hi, lo := digit(value[i+1]), digit(value[i+2]); hi < 16 && lo < 16 {
				to = append(to, hi<<4|lo)
				i += 2
				continue
			}
		}
		to = append(to, value[i])
	}
	return to
}

func digit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	}
	return 255
}

// SetOf returns a set of keys.
func SetOf(keys ...Key) (s Set) {
	for _, k := range keys {
		s |= 1 << k
	}
	return s
}

// Any reports whether a header, or a field of dlq-meta, has one of the keys.
func Any(h []kgo.RecordHeader, keys Set) bool {
	for i := range h {
		switch k := Of(h[i].Key); {
		case k == User:
		case keys.Has(k), k == Meta && len(without(h[i].Value, keys)) < len(h[i].Value):
			return true
		}
	}
	return false
}

// Without returns headers in which neither a header nor a field of dlq-meta has one of the keys. It
// does not change h.
func Without(h []kgo.RecordHeader, keys Set) []kgo.RecordHeader {
	out := make([]kgo.RecordHeader, 0, len(h))
	for i := range h {
		one := h[i]
		switch k := Of(one.Key); {
		case k == User:
		case keys.Has(k):
			continue
		case k == Meta:
			one.Value = without(one.Value, keys)
		}
		out = append(out, one)
	}
	return out
}

// without returns the fields of a text that have other keys than those, and what is no field.
func without(text []byte, keys Set) []byte {
	var kept []byte
	for rest := text; len(rest) > 0; {
		f, after, ok := NextField(rest)
		if !ok {
			return append(kept, rest...)
		}
		if f.Key == User || !keys.Has(f.Key) {
			kept = append(kept, f.Text...)
		}
		rest = after
	}
	return kept
}

// With returns headers in which the key occurs once, with that value. It does not change h. A field
// comes first in dlq-meta: one behind a break would not be read.
func With(h []kgo.RecordHeader, k Key, value string) []kgo.RecordHeader {
	out := Without(h, SetOf(k))
	if fieldNames[k] == "" {
		return append(out, kgo.RecordHeader{Key: k.String(), Value: []byte(value)})
	}
	for i := range out {
		if out[i].Key == names[Meta] {
			out[i].Value = append(AppendField(nil, k, value), out[i].Value...)
			return out
		}
	}
	return append(out, kgo.RecordHeader{Key: names[Meta], Value: AppendField(nil, k, value)})
}
