package consumer

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
)

// A goroutine of a failed run may use its context for longer. It raced with the next run, for which
// the record was written over, and whose handler may give it another context. Not in virtual time,
// which orders what the race detector has to find unordered.
func TestRunner_NextRunHasARecordOfItsOwn(t *testing.T) {
	t.Parallel()
	for name, is := range map[string]struct {
		order  Order
		pauses bool
	}{
		"in place": {OrderPartition, false}, "after a pause": {OrderPartition, true}, "after a pause, without order": {OrderNone, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy := Policy{HandlerTimeout: -1, Immediate: Immediate{Attempts: 1, Base: 1, Max: 1}}
			c := idle(t, Config{Order: is.order, Logger: slog.New(slog.DiscardHandler), Policy: policy}, func() {})
			runs, late, l := make(chan *kgo.Record, 2), sync.WaitGroup{}, held(c, 0, "m")
			c.cfg.Handler = func(ctx context.Context, r *kgo.Record) error {
				if string(r.Value) != "v" || r.Context != nil {
					t.Errorf("the record is not as it was read: %q, %v", r.Value, r.Context)
				}
				r.Value, r.Context = nil, context.Background()
				runs <- r
				if len(runs) == cap(runs) {
					return nil
				}
				if is.pauses {
					c.Pause("orders")
				}
				late.Go(func() {
					<-ctx.Done()
					ctx.Value(ctxKey("a hook's"))
				})
				return classify.Retryable(errors.New("busy"))
			}
			l.source.takePolled([]*kgo.Record{{Topic: "orders", Value: []byte("v")}}, 1)
			for done := false; !done; {
				<-l.changed
				l.mu.Lock()
				done = l.source.tracker.Commit().Floor == 1
				again := is.pauses && len(l.units) == 0
				l.mu.Unlock()
				if again {
					c.Resume("orders")
				}
			}
			late.Wait()
			if a, b := <-runs, <-runs; a == b {
				t.Error("both runs got the same record")
			}
		})
	}
}
