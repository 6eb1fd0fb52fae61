package headers

import (
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Peek reads the two headers that say whether, and when, a consumer has to do
// with a record on a retry topic: whose failure it is, and when it is due. It
// is for whoever passes over many such records and runs few of them; it does
// not allocate. ok is false where one of the two is missing, broken or there
// more than once: [Parse] then says what is wrong. The group is empty then
// unless it alone can be read: a broken due time is for that group to see to.
//
// The group aliases the header's value.
func Peek(h []kgo.RecordHeader) (ofGroup []byte, due time.Time, ok bool) {
	var at []byte
	twice := false
	for i := range h {
		switch keyOf(h[i].Key) {
		case group:
			if ofGroup != nil {
				return nil, time.Time{}, false
			}
			ofGroup = h[i].Value
		case notBefore:
			twice = twice || at != nil
			at = h[i].Value
		}
	}
	if len(ofGroup) == 0 || len(ofGroup) > maxGroup || !utf8.Valid(ofGroup) {
		return nil, time.Time{}, false
	}
	ms, err := parseInt(at, 0, maxMillis)
	if err != nil || twice {
		return ofGroup, time.Time{}, false
	}
	return ofGroup, time.UnixMilli(ms), true
}

// Code is a small number for a reserved key, 0 for any other: for whoever keeps
// many records in memory. It means nothing outside of the process.
func Code(key string) byte { return byte(keyOf(key)) }

// Name is the key that [Code] gave the number for; empty for 0.
func Name(code byte) string { return keyNames[code] }
