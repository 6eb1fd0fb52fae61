package headers

import (
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Peek reads the two headers of a record on a retry topic that decide whether and when a consumer
// has to process it: its group and its due time. It serves readers that skip many such records and
// run few, and does not allocate. ok is false if one of the two is missing, invalid or duplicate;
// [Parse] then returns the reason. The group is set even then if it alone is valid: that group
// handles an invalid due time.
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

// Code returns a small number for a reserved key, 0 for any other. It serves programs that keep
// many records in memory, and has no meaning outside of the process.
func Code(key string) byte { return byte(keyOf(key)) }

// Name returns the key for a number of [Code]; empty for 0.
func Name(code byte) string { return keyNames[code] }
