package reserved

import (
	"errors"
	"math"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Fields are the values of the reserved headers of one record, by their keys. They alias the
// record's headers.
type Fields struct {
	// Value has the value of each key that occurs: the first one, if it occurs twice.
	Value [Count][]byte
	// Present are the keys that occur, Twice those that occur more than once, and Repeated is the
	// first of these. InMeta are those whose value is a field of dlq-meta.
	Present, Twice, InMeta Set
	Repeated               Key
	// Unknown has the fields that this version does not know, as they stand in dlq-meta.
	Unknown []byte
	// Broken reports that dlq-meta is no row of fields. Those before the break are read.
	Broken bool
}

// Set is a set of keys.
type Set uint32

// Has reports whether the key is in the set.
func (s Set) Has(k Key) bool { return s&(1<<k) != 0 }

// Remove takes the key out of the set.
func (s *Set) Remove(k Key) { *s &^= 1 << k }

// Read adds the headers of a record to fields that are empty.
func (f *Fields) Read(h []kgo.RecordHeader) {
	for i := range h {
		if k := Of(h[i].Key); k != User && f.add(k, h[i].Value) && k == Meta {
			f.readMeta(h[i].Value)
		}
	}
}

// add adds a value, and reports whether it is the first of its key.
func (f *Fields) add(k Key, value []byte) bool {
	if f.Present.Has(k) {
		if f.Twice == 0 {
			f.Repeated = k
		}
		f.Twice |= 1 << k
		return false
	}
	f.Present |= 1 << k
	f.Value[k] = value
	return true
}

func (f *Fields) readMeta(text []byte) {
	for len(text) > 0 {
		field, rest, ok := NextField(text)
		switch {
		case !ok:
			f.Broken = true
			return
		case field.Key == User:
			f.Unknown = append(f.Unknown, field.Text...)
		case f.add(field.Key, field.Value):
			f.InMeta |= 1 << field.Key
		}
		text = rest
	}
}

// The errors of Int.
var (
	ErrSyntax = errors.New("not in the format of this header")
	ErrRange  = errors.New("out of bounds")
)

// MaxMillis is the end of the year 9999, the last that RFC 3339 can print.
const MaxMillis = 253_402_300_799_999

// Int reads a decimal number between lo and hi: digits with at most one leading minus.
func Int[T string | []byte](s T, lo, hi int64) (int64, error) {
	digits, negative := s, false
	if len(s) > 0 && s[0] == '-' {
		digits, negative = s[1:], true
	}
	if len(digits) == 0 {
		return 0, ErrSyntax
	}
	var n uint64
	for i := range len(digits) {
		c := digits[i] - '0'
		if c > 9 {
			return 0, ErrSyntax
		}
		if i >= 18 && n > (math.MaxUint64-9)/10 {
			return 0, ErrRange
		}
		n = n*10 + uint64(c)
	}
	switch {
	case negative && n > -math.MinInt64, !negative && n > math.MaxInt64:
		return 0, ErrRange
	case negative:
		n = -n // wraps to the two's complement, MinInt64 included
	}
	if v := int64(n); v >= lo && v <= hi {
		return v, nil
	}
	return 0, ErrRange
}
