package consumertest

import (
	"context"
	"hash/maphash"
	"reflect"
	"runtime"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
)

// unchanged fails the test if a handler changes its record's bytes: the copy of a failed one would
// have what the handler made of it, and the retry would begin with that.
func unchanged(tb testing.TB, h consumer.Handler) consumer.Handler {
	name := runtime.FuncForPC(reflect.ValueOf(h).Pointer()).Name()
	return func(ctx context.Context, r *kgo.Record) error {
		was := &kgo.Record{Key: r.Key, Value: r.Value, Headers: r.Headers}
		before := hash(was)
		defer func() {
			if hash(was) != before {
				tb.Errorf("consumertest: the handler %s changed the bytes of the record %s/%d/%d: its key, value or headers. "+
					"A retry would begin with the change; work on a copy of the bytes (bytes.Clone)", name, r.Topic, r.Partition, r.Offset)
			}
		}()
		return h(ctx, r)
	}
}

var seed = maphash.MakeSeed()

// hash returns a hash of what a copy of a record has of it.
func hash(r *kgo.Record) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	add := func(b []byte) {
		maphash.WriteComparable(&h, len(b))
		_, _ = h.Write(b) // never fails
	}
	add(r.Key)
	add(r.Value)
	for _, header := range r.Headers {
		add([]byte(header.Key))
		add(header.Value)
	}
	return h.Sum64()
}
