package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/headers"
)

// path: a record's way from its source through the tiers.
var path = map[string]func(*testing.T, *fixture){
	"healthy records are handled once and committed": func(t *testing.T, f *fixture) {
		f.Run(f.config(ok))
		for i := range 100 {
			f.Handled(f.Produce(f.record(fmt.Sprint(i)))[0], 1)
		}
		f.Conserved()
	},
	"a retryable failure goes through every tier to the DLQ": func(t *testing.T, f *fixture) {
		var runs atomic.Int32
		f.Run(f.config(func(ctx context.Context, r *kgo.Record) error {
			if got, want := consumer.DeliveryOf(ctx, r).Attempt, int(runs.Add(1)); got != want {
				t.Errorf("attempt %d, want %d", got, want)
			}
			return classify.As(classify.Retryable(errBusy), "payment.busy")
		}))
		r := f.Produce(f.record("x"))[0]
		first := f.Parked(r, tier1, "payment.busy")
		second := f.Parked(r, tier2, "payment.busy")
		last := f.DeadLettered(r, headers.ReasonExhausted)
		if first.Attempts != 1 || second.Attempts != 2 || last.Attempts != 3 || runs.Load() != 3 {
			t.Errorf("attempts %d, %d, %d in %d runs; want 1, 2, 3 in 3", first.Attempts, second.Attempts, last.Attempts, runs.Load())
		}
		if !last.FirstFailedAt.Equal(first.FailedAt) || last.Hops != 3 || len(last.History) != 3 {
			t.Errorf("dead letter says first failed %v, hops %d, history %v; want %v, 3, three entries", last.FirstFailedAt, last.Hops, last.History, first.FailedAt)
		}
		f.Conserved()
	},
	"an unknown error is terminal": func(t *testing.T, f *fixture) {
		f.Run(f.config(func(context.Context, *kgo.Record) error { return errors.New("no such SKU") }))
		m := f.DeadLettered(f.Produce(f.record("x"))[0], headers.ReasonTerminal)
		if m.Attempts != 1 || m.Message != "no such SKU" || m.Group != f.group {
			t.Errorf("dead letter says attempts %d, message %q, group %q", m.Attempts, m.Message, m.Group)
		}
		f.Conserved()
	},
	"a failing record holds up nothing behind it": func(t *testing.T, f *fixture) {
		f.Run(f.config(failingOn("poison", classify.Retryable(errBusy))))
		records := []*kgo.Record{f.record("poison")}
		for range 50 {
			records = append(records, f.record("fine"))
		}
		f.Produce(records...)
		f.handledOnce(records[1:])
		f.DeadLettered(records[0], headers.ReasonExhausted)
		f.Conserved()
	},
	// Trap 3: two records of one partition fail, and the second seek undoes the first.
	"failures of one partition do not undo each other": func(t *testing.T, f *fixture) {
		var mu sync.Mutex
		runs := map[int64][]int{}
		f.Run(f.config(func(ctx context.Context, r *kgo.Record) error {
			n := consumer.DeliveryOf(ctx, r).Attempt
			mu.Lock()
			runs[r.Offset] = append(runs[r.Offset], n)
			mu.Unlock()
			if n <= int(r.Offset%3) {
				return classify.Retryable(errBusy)
			}
			return nil
		}))
		var records []*kgo.Record
		for range 60 {
			records = append(records, &kgo.Record{Topic: f.topic, Partition: 1})
		}
		f.handledOnce(f.Produce(records...))
		f.Conserved()
		mu.Lock()
		defer mu.Unlock()
		for offset, got := range runs {
			if want := []int{1, 2, 3}[:offset%3+1]; !slices.Equal(got, want) {
				t.Errorf("record %d ran as attempts %v, want %v", offset, got, want)
			}
		}
	},
	// Trap 4: a record that succeeds on one partition resets the attempts counted on another.
	"successes beside a failing record leave its attempts alone": func(t *testing.T, f *fixture) {
		f.Run(f.config(failingOn("poison", classify.Retryable(errBusy))))
		fine := func() {
			f.handledOnce(f.Produce(&kgo.Record{Topic: f.topic, Key: f.keyOf(0)}, &kgo.Record{Topic: f.topic, Partition: 1}))
		}
		poison := f.Produce(&kgo.Record{Topic: f.topic, Partition: 1, Value: []byte("poison")})[0]
		fine()
		for i, tier := range []time.Duration{tier1, tier2} {
			if m := f.Parked(poison, tier, ""); m.Attempts != i+1 {
				t.Errorf("parked for %v after %d attempts, want %d", tier, m.Attempts, i+1)
			}
			fine()
		}
		if m := f.DeadLettered(poison, headers.ReasonExhausted); m.Attempts != 3 {
			t.Errorf("exhausted after %d attempts, want 3", m.Attempts)
		}
		f.Conserved()
	},
	// Trap 10: tombstones and empty values are taken for the same, or get lost, on the way to the
	// dead-letter topic.
	"null and empty stay apart down to the dead-letter topic": func(t *testing.T, f *fixture) {
		f.Run(f.config(busy))
		for _, r := range f.Produce(
			&kgo.Record{Topic: f.topic, Partition: 1},
			&kgo.Record{Topic: f.topic, Partition: 1, Key: []byte{}, Value: []byte{}},
			&kgo.Record{Topic: f.topic, Partition: 1, Key: []byte("k")},
			&kgo.Record{Topic: f.topic, Partition: 1, Value: []byte("v")},
		) {
			for _, topic := range []string{f.tierTopic(tier1), f.tierTopic(tier2), f.topic + ".dlq"} {
				c := f.find(t, topic, func(c *kgo.Record) bool { return value(c, headers.OriginalOffset) == fmt.Sprint(r.Offset) })
				if !sameBytes(c.Key, r.Key) || !sameBytes(c.Value, r.Value) {
					t.Errorf("on %s the key of record %d is %#v and its value %#v; want %#v, %#v", topic, r.Offset, c.Key, c.Value, r.Key, r.Value)
				}
			}
		}
		f.Conserved()
	},
	// Trap 11: each hop appends its headers to the existing ones, and a reader finds the first
	// error.
	"headers do not grow with the hops and tell of the last failure": func(t *testing.T, f *fixture) {
		const attempts = 6
		cfg := f.config(func(ctx context.Context, r *kgo.Record) error {
			n := consumer.DeliveryOf(ctx, r).Attempt
			return classify.As(classify.Retryable(fmt.Errorf("failure %d", n)), fmt.Sprint("busy.", n))
		})
		cfg.Policy.MaxAttempts, cfg.Policy.Jitter = attempts, -1
		f.Run(cfg)
		user := []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "dlq-mine", Value: []byte("2")}, {Key: "a", Value: []byte("3")}}
		r := f.Produce(&kgo.Record{Topic: f.topic, Partition: 1, Headers: user})[0]
		last := f.DeadLettered(r, headers.ReasonExhausted)
		if last.Class != "busy.6" || last.Message != "failure 6" || last.Attempts != attempts || last.Hops != attempts {
			t.Errorf("the dead letter says %q of class %s after %d attempts and %d hops, want the last failure's", last.Message, last.Class, last.Attempts, last.Hops)
		}
		copies := []*kgo.Record{f.find(t, f.tierTopic(tier1), func(*kgo.Record) bool { return true })}
		f.find(t, f.tierTopic(tier2), func(c *kgo.Record) bool { copies = append(copies, c); return len(copies) == attempts-1 })
		for i, c := range copies {
			if got, want := len(c.Headers), len(copies[0].Headers); got != want {
				t.Errorf("copy %d has %d headers, the first one %d", i+1, got, want)
			}
			// Each header exists once.
			if got, want := value(c, headers.ErrorClass), fmt.Sprint("busy.", i+1); got != want {
				t.Errorf("copy %d is of class %s, want %s", i+1, got, want)
			}
			if got := headers.Strip(c.Headers); !sameHeaders(got, user) {
				t.Errorf("copy %d has the user's headers %q, want %q", i+1, got, user)
			}
			seen := map[string]bool{}
			for _, h := range c.Headers {
				if headers.Reserved(h.Key) && seen[h.Key] {
					t.Errorf("copy %d has %s twice", i+1, h.Key)
				}
				seen[h.Key] = true
			}
		}
		f.Conserved()
	},
	"no delivery is early": func(t *testing.T, f *fixture) {
		f.Run(f.config(func(ctx context.Context, r *kgo.Record) error {
			facts := consumer.DeliveryOf(ctx, r)
			if now := time.Now(); now.UnixMilli() < facts.NotBefore.UnixMilli() {
				t.Errorf("attempt %d runs at %v, due %v", facts.Attempt, now, facts.NotBefore)
			}
			return classify.Retryable(errBusy)
		}))
		var records []*kgo.Record
		for i := range 200 {
			records = append(records, f.record(fmt.Sprint(i)))
		}
		f.DeadLettered(f.Produce(records...)[0], headers.ReasonExhausted)
		f.Conserved()
	},
}
