package suite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/internal/client"
)

// size: copies that are too large for their topic.
var size = map[string]func(*testing.T, *fixture){
	// Trap 21: a copy is too large for its topic, and is lost or sent for ever, with all that share
	// its batch.
	"a copy that is too large drops no more than necessary": func(t *testing.T, f *fixture) {
		cases.Skip(t)
		cfg := f.oversized(t, 20_000, 30_000)
		cfg.Order, cfg.Concurrency = consumer.OrderNone, 100
		c := f.Run(cfg)
		type want struct {
			size           int  // plus some 1,500 bytes, 1,100 of them history and message
			parked         bool // in the tier
			storyInTheTier bool
			reason         headers.Reason
			story, omitted bool // of the dead letter
		}
		wants := []want{
			{size: 100, parked: true, storyInTheTier: true, reason: headers.ReasonExhausted, story: true},
			{size: 19_200, parked: true, reason: headers.ReasonExhausted, story: true},
			{size: 25_000, reason: headers.ReasonTooLarge, story: true},
			{size: 29_200, reason: headers.ReasonTooLarge},
			{size: 40_000, reason: headers.ReasonTooLarge, story: true, omitted: true},
			{size: 101, parked: true, storyInTheTier: true, reason: headers.ReasonExhausted, story: true},
		}
		var records []*kgo.Record
		for i := range 10 * len(wants) {
			w := wants[i%len(wants)]
			records = append(records, &kgo.Record{Topic: f.topic, Partition: 1, Key: fmt.Append(nil, i), Value: noise(w.size)})
		}
		for i, r := range f.Produce(records...) {
			w := wants[i%len(wants)]
			if w.parked {
				if m := f.Parked(r, tier1, "busy"); (m.Message != "") != w.storyInTheTier || (len(m.History) == 1) != w.storyInTheTier {
					t.Errorf("value of %d bytes: the copy in the tier says %+v, want its message: %v", w.size, m, w.storyInTheTier)
				}
			}
			m := f.DeadLettered(r, w.reason)
			if (m.Message != "") != w.story || m.ValueOmitted != w.omitted {
				t.Errorf("value of %d bytes: the dead letter says %+v, want its message: %v, without its value: %v", w.size, m, w.story, w.omitted)
			}
			letter := f.find(t, f.topic+".dlq", func(l *kgo.Record) bool { return bytes.Equal(l.Key, r.Key) })
			if w.omitted && letter.Value != nil || !w.omitted && !bytes.Equal(letter.Value, r.Value) {
				t.Errorf("value of %d bytes: the dead letter has %d", w.size, len(letter.Value))
			}
		}
		f.Conserved()
		if n := f.count(t, f.topic+".dlq"); n != int64(len(records)) {
			t.Errorf("%d dead letters of %d records", n, len(records))
		}
		if h := c.Health(); h.OK || h.Lanes[1].Omitted != 10 || h.Lanes[1].State != consumer.StateRunning {
			t.Errorf("health is %+v, want ten values omitted on lane 1", h)
		}
	},
	"what a topic takes compressed is not refused before": func(t *testing.T, f *fixture) {
		c := f.Run(f.oversized(t, 200_000, 200_000))
		large := &kgo.Record{Topic: f.topic, Partition: 1, Key: []byte("k"), Value: make([]byte, 2<<20)}
		cl := f.client(t, kgo.ProducerBatchMaxBytes(4<<20), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		defer cl.Close()
		must(t, cl.ProduceSync(context.Background(), large).FirstErr())
		f.Parked(large, tier1, "busy")
		f.DeadLettered(large, headers.ReasonExhausted)
		for _, topic := range []string{f.tierTopic(tier1), f.topic + ".dlq"} {
			if r := f.find(t, topic, func(*kgo.Record) bool { return true }); !bytes.Equal(r.Value, large.Value) {
				t.Errorf("%s has %d bytes of the value, want %d", topic, len(r.Value), len(large.Value))
			}
		}
		if h := c.Health(); !h.OK {
			t.Errorf("health is %+v, want OK", h)
		}
	},
	// The producer's codec makes little of a record that snappy makes too much of. It had no retry,
	// and its letter had no value.
	"a record that its source took by a stronger codec fits into its siblings": func(t *testing.T, f *fixture) {
		cases.Skip(t)
		cfg := f.config(busy)
		cfg.Policy.Tiers = []time.Duration{tier1}
		c := f.Run(cfg)
		for name, codec := range map[string]kgo.Opt{"gzip": kgo.ProducerBatchCompression(kgo.GzipCompression()), "zstd": client.Strongest()} {
			large := &kgo.Record{Topic: f.topic, Partition: 1, Key: []byte(name), Value: orders(2_700_000)}
			cl := f.client(t, kgo.ProducerBatchMaxBytes(4<<20), kgo.RecordPartitioner(kgo.ManualPartitioner()), codec)
			defer cl.Close()
			if err := cl.ProduceSync(context.Background(), large).FirstErr(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			f.Parked(large, tier1, "")
			if m := f.DeadLettered(large, headers.ReasonExhausted); m.ValueOmitted {
				t.Errorf("%s: the dead letter says %+v", name, m)
			}
			for _, topic := range []string{f.tierTopic(tier1), f.topic + ".dlq"} {
				if r := f.find(t, topic, func(r *kgo.Record) bool { return string(r.Key) == name }); !bytes.Equal(r.Value, large.Value) {
					t.Errorf("%s: %s has %d bytes of the value, want %d", name, topic, len(r.Value), len(large.Value))
				}
			}
		}
		if h := c.Health(); !h.OK {
			t.Errorf("health is %+v", h)
		}
	},
	"what does not even fit without its value blocks its lane until it does": func(t *testing.T, f *fixture) {
		cfg := f.oversized(t, 9_000, 9_000)
		log := &refusals{}
		cfg.Logger = slog.New(log)
		c := f.Run(cfg)
		large := f.Produce(&kgo.Record{Topic: f.topic, Partition: 1, Key: noise(10_000), Value: []byte("v")})[0]
		eventually(t, "the lane is blocked", func() bool { return c.Health().Lanes[1].State == consumer.StateBlocked })
		other := f.Produce(&kgo.Record{Topic: f.topic, Key: f.keyOf(0), Value: []byte("v")})[0]
		f.DeadLettered(other, headers.ReasonExhausted)
		// The limit is raised while the lane waits for some seconds. During an attempt, which drops
		// more and more of the copy, there would be room for a later step.
		before := log.tries.Load()
		eventually(t, "the copy was refused again", func() bool { return log.tries.Load() > max(before, 3) })
		f.limit(t, f.topic+".dlq", 1<<20)
		if m := f.DeadLettered(large, headers.ReasonTooLarge); m.Message == "" || m.ValueOmitted {
			t.Errorf("the dead letter says %+v, want all of it now that there is room", m)
		}
		f.Conserved()
		eventually(t, "health is OK", func() bool { return c.Health().OK })
	},
}

// refusals is a log that records the number of the last refusal.
type refusals struct{ tries atomic.Int64 }

func (*refusals) Enabled(context.Context, slog.Level) bool { return true }
func (l *refusals) WithAttrs([]slog.Attr) slog.Handler     { return l }
func (l *refusals) WithGroup(string) slog.Handler          { return l }
func (l *refusals) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "try" {
			l.tries.Store(a.Value.Int64())
		}
		return true
	})
	return nil
}

// oversized creates the siblings of one tier with limits, and a configuration whose handler fails
// with a long message.
func (f *fixture) oversized(t *testing.T, tier, dlq int) consumer.Config {
	t.Helper()
	message := prose(1000)
	cfg := f.config(func(context.Context, *kgo.Record) error {
		return classify.As(classify.Retryable(errors.New(message)), "busy")
	})
	cfg.Policy.Tiers = []time.Duration{tier1}
	for topic, limit := range map[string]int{f.tierTopic(tier1): tier, f.topic + ".dlq": dlq} {
		f.CreateTopic(topic, 2)
		f.limit(t, topic, limit)
	}
	return cfg
}

// noise returns n bytes that compression does not shrink.
func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b) // never fails
	return b
}

// orders returns some n bytes of JSON, of which gzip makes a third, and snappy more than half.
func orders(n int) []byte {
	random, b := noise(n/4), []byte("[")
	for len(b) < n {
		b = fmt.Appendf(b, `{"id":"%x","state":"shipped","total":%d},`, random[:12], random[12])
		random = random[13:]
	}
	b[len(b)-1] = ']'
	return b
}

// prose returns n bytes of text that compression shrinks little.
func prose(n int) string {
	b := noise(n)
	for i := range b {
		b[i] = ' ' + b[i]%95
	}
	return string(b)
}
