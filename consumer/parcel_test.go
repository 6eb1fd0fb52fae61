package consumer

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/sidingkafka/siding/headers"
)

// Nil stays nil, empty stays empty, headers keep their order and duplicates; and nothing is shared with what was fetched.
func TestAParcelGivesTheRecordBack(t *testing.T) {
	t.Parallel()
	bytesOf := rapid.OneOf(rapid.Just[[]byte](nil), rapid.Just([]byte{}), rapid.SliceOfN(rapid.Byte(), 0, 400))
	key := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", headers.Group, headers.NotBefore, headers.ValueOmitted, "dlq-mine"}))
	f := &feed{topic: "orders.retry.5s", lane: &lane{partition: 7}}
	rapid.Check(t, func(t *rapid.T) {
		r := &kgo.Record{
			Key: bytesOf.Draw(t, "key"), Value: bytesOf.Draw(t, "value"), Topic: f.topic, Partition: 7,
			Offset: rapid.Int64Min(0).Draw(t, "offset"), LeaderEpoch: rapid.Int32Min(-1).Draw(t, "epoch"),
			Timestamp: time.UnixMilli(rapid.Int64Range(-1, 1<<50).Draw(t, "timestamp")),
		}
		for range rapid.IntRange(0, 20).Draw(t, "headers") {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: key.Draw(t, "header"), Value: bytesOf.Draw(t, "header value")})
		}
		want := *r
		want.Headers = nil
		clone := func(b []byte) []byte {
			if b == nil {
				return nil
			}
			return append([]byte{}, b...)
		}
		want.Key, want.Value = clone(r.Key), clone(r.Value)
		for _, h := range r.Headers {
			want.Headers = append(want.Headers, kgo.RecordHeader{Key: h.Key, Value: clone(h.Value)})
		}
		p := pack(r, 42)
		if cap(p.data) > packedLen(r) || p.due != 42 {
			t.Fatalf("packed into %d bytes, due at %d; want %d at most, due at 42", cap(p.data), p.due, packedLen(r))
		}
		for _, b := range append([][]byte{r.Key, r.Value}, values(r.Headers)...) {
			copy(b, bytes.Repeat([]byte{0xEE}, len(b)))
		}
		if got := p.unpack(f); !reflect.DeepEqual(got, &want) {
			t.Fatalf("unpacked %+v\nwant %+v", got, &want)
		}
	})
}

func values(h []kgo.RecordHeader) (all [][]byte) {
	for i := range h {
		all = append(all, h[i].Value)
	}
	return all
}
