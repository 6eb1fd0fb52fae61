package redrive_test

import (
	"crypto/rand"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive"
)

// fast is a pace at which many letters share a batch.
var fast = redrive.Pace{Canary: -1, Ramp: -1, Rate: 1000, Burst: 100}

// The tier accepts batches of one letter, or forty, but not of a hundred, and one letter only by
// the best level of zstd. That letter alone pays for it.
func TestSender_SplitsABatchThatIsTooLarge(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		s := letters(t, k, 1, nil)
		var records []*kgo.Record
		for range 200 {
			records = append(records, &kgo.Record{Topic: "orders", Value: incompressible()})
		}
		records[7].Value = repeating()
		k.DeadLettered(k.Produce(records...)[199], "terminal")
		s.set(succeeding)
		alter(t, k, "orders.retry.5s", "max.message.bytes", "84000")
		r := redriver(t, k)
		succeeds(t, 201)(r.Run(t.Context(), plan(t, r), ann(fast, nil)))
		strong := map[bool]int{} // copies by another codec than the usual one, by being large
		for _, c := range on(t, k, "orders.retry.5s") {
			if c.Attrs.CompressionType() != uint8(kgo.CodecNone) && c.Attrs.CompressionType() != uint8(kgo.CodecSnappy) {
				strong[len(c.Value) > 2000]++
			}
		}
		if strong[false] > 0 || strong[true] != 1 {
			t.Errorf("copies by a stronger codec than the usual one, by whether they are large: %v", strong)
		}
	})
}

// repeating returns JSON with few words, many numbers, and a large part that comes twice. zstd
// makes less of it than gzip: its best level 81 kB, the level below 88 kB.
func repeating() []byte {
	part := make([]byte, 40_000)
	rand.Read(part) // it never fails
	from := []string{"alpha", "beta", "customer", "order", "shipped", "returned", "address", "street", "number", "total", "currency"}
	rnd, b := mathrand.New(mathrand.NewPCG(1, 2)), slices.Clone(part)
	for len(b) < 240_000 {
		w := func() string { return from[rnd.IntN(len(from))] }
		b = fmt.Appendf(b, `{"%s":"%s %s","%s":%d},`, w(), w(), w(), w(), rnd.IntN(100_000))
	}
	return append(b, part...)
}

// The client refuses a record of a megabyte before compression, and the broker was never asked.
func TestSender_SendsWhateverTheTargetTakes(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		s := letters(t, k, 20, nil)
		random := make([]byte, 2<<20)
		rand.Read(random)
		// The tier takes the first three: one compresses well, and one by the strongest codec
		// alone. It does not take the last.
		for _, value := range [][]byte{make([]byte, 3_000_000), random[:1_040_000], fmt.Appendf(nil, "%x", random[:1_000_000]), random} {
			cl := clientOf(t, k, kgo.ProducerBatchMaxBytes(8<<20))
			alter(t, k, "orders", "max.message.bytes", "8388608")
			alter(t, k, "orders.dlq", "max.message.bytes", "8388608")
			r := &kgo.Record{Topic: "orders", Value: value}
			if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
			k.DeadLettered(r, "terminal")
		}
		s.set(succeeding)
		alter(t, k, "orders.retry.5s", "max.message.bytes", "1200000")
		r := redriver(t, k)
		said := map[string]bool{}
		ends(t, redrive.Counts{Succeeded: 23, Skipped: map[string]int64{redrive.SkippedTooLarge: 1}})(r.Run(within(t, 10*time.Minute), plan(t, r), ann(fast, func(e redrive.Event) {
			said[e.Message] = true
		})))
		if len(said) > 4 {
			t.Errorf("it says %q", slices.Collect(maps.Keys(said)))
		}
	})
}

func TestSender_LeavesOnlyTheRefusedLetter(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	for name, c := range map[string]struct {
		answer *kerr.Error
		want   string
	}{
		"too large": {kerr.MessageTooLarge, redrive.SkippedTooLarge},
		"timestamp": {kerr.InvalidTimestamp, redrive.SkippedRefused},
		"no key":    {kerr.InvalidRecord, redrive.SkippedRefused},
	} {
		virtual(t, name, func(t *testing.T, k *consumertest.Kafka) {
			s := letters(t, k, 1, nil)
			var records []*kgo.Record
			for i := range 200 {
				value := incompressible()
				if i == 17 || i == 170 {
					copy(value, "refuse me")
				}
				records = append(records, &kgo.Record{Topic: "orders", Value: value})
			}
			all := k.Produce(records...)
			k.DeadLettered(all[199], "terminal")
			s.set(succeeding)
			k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.retry.5s", Err: c.answer, Count: -1, When: writes("refuse me")})
			r := redriver(t, k, kgo.ProducerBatchCompression(kgo.NoCompression()))
			var mu sync.Mutex
			said := map[string]bool{}
			ends(t, redrive.Counts{Succeeded: 199, Skipped: map[string]int64{c.want: 2}})(r.Run(t.Context(), plan(t, r), ann(fast, func(e redrive.Event) {
				mu.Lock()
				defer mu.Unlock()
				if strings.Contains(e.Message, " stays: ") {
					said[e.Message] = true
				}
			})))
			for m := range said {
				if !strings.Contains(m, c.want) || !strings.Contains(m, c.answer.Message) {
					t.Errorf("it says %q", m)
				}
			}
			if len(said) != 2 {
				t.Errorf("it says %v, want one for each", said)
			}
			if again := plan(t, r); again.Letters != 2 {
				t.Errorf("what was not sent is to be open; a new plan has %+v", again)
			}
		})
	}
}

func TestSender_TakesAnotherCanaryForARefusedOne(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 20, succeeding)
		// It is refused by the usual codec, in larger batches, by the strongest codec, and without
		// its history.
		k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.retry.5s", Err: kerr.MessageTooLarge, Count: 4})
		r, p := planned(t, k)
		ends(t, redrive.Counts{Succeeded: 19, Skipped: map[string]int64{redrive.SkippedTooLarge: 1}})(r.Run(within(t, 10*time.Minute), p, ann(redrive.Pace{}, nil)))
	})
}
