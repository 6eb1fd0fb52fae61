package reserved_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/reserved"
)

// copyOnTier returns the headers of a copy that is due at a time.
func copyOnTier(due time.Time) []kgo.RecordHeader {
	m := headers.Meta{
		Original: headers.Position{Topic: "orders", TopicID: [16]byte{1}, Partition: 3, Offset: 1045, Timestamp: due},
		Group:    "billing", Attempts: 2, Class: "orders.SKUError", Message: "order 7: unknown SKU", Fingerprint: "0123456789abcdef",
		FirstFailedAt: due, FailedAt: due, NotBefore: due, Hops: 2, Version: "1.4.2", Environment: "production", Host: "billing-6d5f",
		History: []headers.Attempt{{Number: 1, Class: "timeout", At: due}},
	}
	return m.Append([]kgo.RecordHeader{
		{Key: "traceparent", Value: []byte("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")},
		{Key: "content-type", Value: []byte("application/json")},
	})
}

// The group alone is enough to know whose record it is; what is wrong beside it is that group's to
// handle.
func TestPeek_ReadsGroupAndDueTimeAsParseDoes(t *testing.T) {
	t.Parallel()
	due := time.UnixMilli(1_763_000_000_123)
	for _, tt := range []struct {
		name       string
		key, value string // replaces a header's value, or drops it if there is none
		twice      bool   // adds the header instead
		group      string
		want       bool
	}{
		{name: "as written", group: "billing", want: true},
		{name: "no group", key: headers.Group},
		{name: "a group twice", key: headers.Group, value: "other", twice: true},
		{name: "a group that is no text", key: headers.Group, value: "\xff"},
		{name: "a group that is too long", key: headers.Group, value: strings.Repeat("g", reserved.MaxGroup+1)},
		{name: "no due time", key: headers.NotBefore, group: "billing"},
		{name: "a due time twice", key: headers.NotBefore, value: "1", twice: true, group: "billing"},
		{name: "a due time before 1970", key: headers.NotBefore, value: "-1", group: "billing"},
		{name: "a due time after 9999", key: headers.NotBefore, value: "253402300800000", group: "billing"},
		{name: "a due time that is no number", key: headers.NotBefore, value: "soon", group: "billing"},
	} {
		var h []kgo.RecordHeader
		for _, one := range copyOnTier(due) {
			if one.Key == tt.key && !tt.twice {
				if tt.value == "" {
					continue
				}
				one.Value = []byte(tt.value)
			}
			h = append(h, one)
		}
		if tt.twice {
			h = append(h, kgo.RecordHeader{Key: tt.key, Value: []byte(tt.value)})
		}
		group, at, ok := reserved.Peek(h)
		if ok != tt.want || !bytes.Equal(group, []byte(tt.group)) || ok && !at.Equal(due) {
			t.Errorf("%s: %q, %v, %v; want %q, %v", tt.name, group, at, ok, tt.group, tt.want)
		}
		if m, err := headers.Parse(h); ok != (err == nil && m.Group != "" && !m.NotBefore.IsZero()) {
			t.Errorf("%s: ok is %v, but Parse returns %q, %v, %v", tt.name, ok, m.Group, m.NotBefore, err)
		}
	}
}

// What Peek skips is never parsed. So where it finds a due time, Parse finds the same one, or
// refuses the record for another header; and Peek finds it where Parse finds both.
func FuzzPeek_AgreesWithParse(f *testing.F) {
	due := time.UnixMilli(1_763_000_000_123)
	f.Add("billing", "1763000000123", true, true, false, false)
	f.Add("bill\xffing", "-1", true, true, true, false)
	f.Add("", "01763000000123", true, false, false, true)
	f.Add("a group", "9223372036854775807", true, true, false, true)
	f.Fuzz(func(t *testing.T, group, at string, hasGroup, hasDue, groupTwice, dueTwice bool) {
		var h []kgo.RecordHeader
		for _, of := range copyOnTier(due) {
			switch of.Key {
			case headers.Group:
				if !hasGroup {
					continue
				}
				of.Value = []byte(group)
			case headers.NotBefore:
				if !hasDue {
					continue
				}
				of.Value = []byte(at)
			}
			h = append(h, of)
		}
		if groupTwice {
			h = append(h, kgo.RecordHeader{Key: headers.Group, Value: []byte(group)})
		}
		if dueTwice {
			h = append(h, kgo.RecordHeader{Key: headers.NotBefore, Value: []byte(at)})
		}
		found, when, ok := reserved.Peek(h)
		m, err := headers.Parse(h)
		if err == nil && hasDue && m.Group != "" && (!ok || string(found) != m.Group || !when.Equal(m.NotBefore)) {
			t.Errorf("Peek finds %q, %v, %v; Parse %q, %v", found, when, ok, m.Group, m.NotBefore)
		}
		if ok && (err != nil || !when.Equal(m.NotBefore)) {
			t.Errorf("Peek finds %v; Parse %v, %v", when, m.NotBefore, err)
		}
		if found != nil && string(found) != group {
			t.Errorf("Peek finds the group %q of %q", found, group)
		}
	})
}
