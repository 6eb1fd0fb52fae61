package tier

import (
	"bytes"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
)

// Nil stays nil, empty stays empty, and headers keep their order and duplicates. The packed record
// shares no memory with the fetched one.
func TestPackedRecord_GivesTheRecordBack(t *testing.T) {
	t.Parallel()
	bytesOf := rapid.OneOf(rapid.Just[[]byte](nil), rapid.Just([]byte{}), rapid.SliceOfN(rapid.Byte(), 0, 400))
	key := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", headers.Group, headers.NotBefore, headers.MetaFields, "dlq-mine"}))
	const topic, partition = "orders.retry.5s", 7
	rapid.Check(t, func(t *rapid.T) {
		r := &kgo.Record{
			Key: bytesOf.Draw(t, "key"), Value: bytesOf.Draw(t, "value"), Topic: topic, Partition: partition,
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
		if got := p.unpack(topic, partition); !reflect.DeepEqual(got, &want) {
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

// Not parallel: what others allocate would count.
func TestPackedRecord_CountsWhatItTakes(t *testing.T) {
	cases.Alone(t)
	long := &kgo.Record{Key: []byte("key"), Value: make([]byte, 1000)}
	for i := range 100 {
		long.Headers = append(long.Headers, kgo.RecordHeader{Key: string(bytes.Repeat([]byte{'a' + byte(i%26)}, 100)), Value: make([]byte, 50)})
	}
	meta := headers.Meta{Original: headers.Position{Topic: "orders"}, Group: "billing", Attempts: 1, Class: "busy", Message: "busy", NotBefore: time.Now()}
	for name, r := range map[string]*kgo.Record{
		"thousands of tiny headers": bomb(0, 4000), "long keys": long, "no header": {Value: make([]byte, 5000)}, "siding's own headers": {Headers: meta.Append(nil)},
	} {
		const n = 200
		packedOnes, records := make([]packedRecord, n), make([]*kgo.Record, n)
		var before, packed, unpacked runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range packedOnes {
			packedOnes[i] = pack(r, 1)
		}
		runtime.ReadMemStats(&packed)
		for i := range records {
			records[i] = packedOnes[i].unpack("orders.retry.5s", 0)
		}
		runtime.ReadMemStats(&unpacked)
		for what, tt := range map[string]struct{ counted, took int64 }{
			"a packed record":    {packedOnes[0].size(), int64(packed.TotalAlloc-before.TotalAlloc) / n},
			"its record besides": {unpackedSize(records[0]), int64(unpacked.TotalAlloc-packed.TotalAlloc) / n},
		} {
			if tt.counted < tt.took*9/10 || tt.counted > tt.took*3/2+100 {
				t.Errorf("%s: %s takes %d bytes and counts %d", name, what, tt.took, tt.counted)
			}
		}
	}
}
