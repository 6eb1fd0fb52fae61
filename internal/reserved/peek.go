package reserved

import (
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
)

// MaxGroup is the length of Kafka's longest string, in bytes.
const MaxGroup = 32_767

// Peek reads the two headers of a record on a retry topic that decide whether and when a consumer
// has to process it: its group and its due time. It serves readers that skip many such records and
// run few, and does not allocate. ok is false if one of the two is missing, invalid or duplicate;
// headers.Parse then returns the reason. The group is set even then if it alone is valid: that
// group handles an invalid due time.
//
// The group aliases the header's value.
func Peek(h []kgo.RecordHeader) (group []byte, due time.Time, ok bool) {
	var f Fields
	for i := range h {
		if k := Of(h[i].Key); k == Group || k == NotBefore {
			f.add(k, h[i].Value)
		}
	}
	group = f.Value[Group]
	if len(group) == 0 || len(group) > MaxGroup || f.Twice.Has(Group) || !utf8.Valid(group) {
		return nil, time.Time{}, false
	}
	ms, err := Int(f.Value[NotBefore], 0, MaxMillis)
	if err != nil || f.Twice.Has(NotBefore) {
		return group, time.Time{}, false
	}
	return group, time.UnixMilli(ms), true
}
