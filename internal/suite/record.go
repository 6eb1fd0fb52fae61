package suite

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

// pinned returns a record for partition 1.
func (f *fixture) pinned(value string, at time.Time) *kgo.Record {
	return &kgo.Record{Topic: f.topic, Partition: 1, Value: []byte(value), Timestamp: at}
}

// copyOf returns the headers of a copy by siding: of a record on partition 1 that is due at once.
func (f *fixture) copyOf(offset int64, attempts int, at time.Time) *headers.Meta {
	return &headers.Meta{
		Original: headers.Position{Topic: f.topic, Partition: 1, Offset: offset, Timestamp: at}, Group: f.group, Attempts: attempts,
		Class: "busy", Message: "busy", FirstFailedAt: at, FailedAt: at, NotBefore: at, Hops: 1,
		History: []headers.Attempt{{Number: 1, Class: "busy", At: at}},
	}
}

// value returns the value of a record's only header with the key.
func value(r *kgo.Record, key string) string {
	all := slices.DeleteFunc(slices.Clone(r.Headers), func(h kgo.RecordHeader) bool { return h.Key != key })
	if len(all) != 1 {
		return fmt.Sprintf("%d times", len(all))
	}
	return string(all[0].Value)
}

// without returns the headers with other keys.
func without(h []kgo.RecordHeader, keys ...string) []kgo.RecordHeader {
	return slices.DeleteFunc(slices.Clone(h), func(h kgo.RecordHeader) bool { return slices.Contains(keys, h.Key) })
}

// sameHeaders compares keys, values and order. A null value may have become an empty one: that
// depends on the broker.
func sameHeaders(a, b []kgo.RecordHeader) bool {
	return slices.EqualFunc(a, b, func(a, b kgo.RecordHeader) bool { return a.Key == b.Key && string(a.Value) == string(b.Value) })
}

// record returns a record for the fixture's topic.
func (f *fixture) record(value string) *kgo.Record {
	return &kgo.Record{Topic: f.topic, Key: []byte("key"), Value: []byte(value)}
}

// many returns n records over 20 keys and both partitions.
func (f *fixture) many(n int) []*kgo.Record {
	all := make([]*kgo.Record, n)
	for i := range all {
		all[i] = &kgo.Record{Topic: f.topic, Key: fmt.Append(nil, "key-", i%20), Value: fmt.Append(nil, i)}
	}
	return all
}

// keyOf returns a key that maps to the partition.
func (f *fixture) keyOf(partition int32) []byte {
	for i := 0; ; i++ {
		key := fmt.Append(nil, "k", i)
		if int32(kgo.StickyKeyPartitioner(nil).ForTopic(f.topic).Partition(&kgo.Record{Key: key}, 2)) == partition {
			return key
		}
	}
}

// sameBytes compares bytes, and distinguishes nil from empty.
func sameBytes(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }
