package suite

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/headers"
)

var errBusy = errors.New("payment gateway is busy")

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
			if got, want := consumer.FactsOf(ctx, r).Attempt, int(runs.Add(1)); got != want {
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
	"a retry that succeeds is the end of it": func(t *testing.T, f *fixture) {
		f.Run(f.config(func(ctx context.Context, r *kgo.Record) error {
			if consumer.FactsOf(ctx, r).Attempt < 3 {
				return classify.Retryable(errBusy)
			}
			return nil
		}))
		r := f.Produce(f.record("x"))[0]
		f.Parked(r, tier2, "")
		f.Handled(r, 1)
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
		f.Run(f.config(func(_ context.Context, r *kgo.Record) error {
			if string(r.Value) == "poison" {
				return classify.Retryable(errBusy)
			}
			return nil
		}))
		records := []*kgo.Record{f.record("poison")}
		for range 50 {
			records = append(records, f.record("fine"))
		}
		f.Produce(records...)
		for _, r := range records[1:] {
			f.Handled(r, 1)
		}
		f.DeadLettered(records[0], headers.ReasonExhausted)
		f.Conserved()
	},
	"no delivery is early": func(t *testing.T, f *fixture) {
		f.Run(f.config(func(ctx context.Context, r *kgo.Record) error {
			facts := consumer.FactsOf(ctx, r)
			if now := time.Now(); now.UnixMilli() < facts.NotBefore.UnixMilli() {
				t.Errorf("attempt %d runs at %v, due %v", facts.Attempt, now, facts.NotBefore)
			}
			return classify.Retryable(errBusy)
		}))
		var records []*kgo.Record
		for i := range 200 {
			records = append(records, f.record(fmt.Sprint(i)))
		}
		for _, r := range f.Produce(records...) {
			f.DeadLettered(r, headers.ReasonExhausted)
			break
		}
		f.Conserved()
	},
	"restart: what was parked runs after it": func(t *testing.T, f *fixture) {
		c := f.Run(f.config(func(context.Context, *kgo.Record) error { return classify.Retryable(errBusy) }))
		r := f.Produce(f.record("x"))[0]
		f.Parked(r, tier1, "")
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}
		f.Run(f.config(ok))
		f.Handled(r, 1)
		f.Conserved()
	},
}
