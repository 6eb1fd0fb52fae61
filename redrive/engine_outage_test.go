package redrive_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive"
)

// Each time a run claims itself again its watch restarts, and the run ended when that failed.
func TestEngine_WaitsUntilItCanWatch(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 20, succeeding)
		r := redriver(t, k)
		var blind *kfake.FaultHandle
		var said string
		began := time.Now()
		o, err := r.Run(t.Context(), plan(t, r), ann(redrive.Pace{Canary: -1, Ramp: -1}, func(e redrive.Event) {
			if strings.Contains(e.Message, "the watch could not start: list") {
				said = e.Message
			}
			if blind == nil {
				k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.EndTxn}, Err: kerr.UnknownServerError, Count: 1})
				blind = k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: "orders.retry.5s", Err: kerr.LeaderNotAvailable, Count: -1})
				time.AfterFunc(time.Minute, blind.Remove)
			}
		}))
		if err != nil || o.State != redrive.Done || o.Counts.Succeeded != 20 || said == "" {
			t.Errorf("the run ended with %v, and %+v; it said %q", err, o, said)
		}
		if took := time.Since(began); took < time.Minute || took > 3*time.Minute {
			t.Errorf("it took %v, of which 1m it could not watch", took)
		}
		if n := blind.Hits(); n > 60*3 {
			t.Errorf("it tried %d times", n)
		}
	})
}

// An operator who stops a run does not wait for brokers that hang, and can resume the run.
func TestEngine_CanBeStoppedBeforeItWatches(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 20, succeeding)
		r, p := planned(t, k)
		var hangs atomic.Bool
		thaw := make(chan struct{})
		k.Cluster.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			if hangs.Load() && listing(req, -1, "orders.retry.5s") {
				k.Cluster.SleepControl(func() { <-thaw })
			}
			return nil, nil, false
		})
		ctx, cancel := context.WithCancelCause(t.Context())
		var stopped time.Time
		enough := errors.New("enough")
		o, err := r.Run(ctx, p, ann(redrive.Pace{Canary: -1, Ramp: -1}, func(redrive.Event) {
			if hangs.CompareAndSwap(false, true) {
				k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.EndTxn}, Err: kerr.UnknownServerError, Count: 1})
				time.AfterFunc(3*time.Second, func() {
					stopped = time.Now()
					cancel(enough)
				})
			}
		}))
		if !errors.Is(err, enough) || o.State.Finished() || o.Stopped.IsZero() || time.Since(stopped) > time.Second {
			t.Errorf("after %v the run ended with %v, and %+v", time.Since(stopped), err, o)
		}
		hangs.Store(false)
		close(thaw)
		succeeds(t, 20)(r.Resume(t.Context(), "orders.dlq", p.ID, ann(redrive.Pace{}, nil)))
	})
}

// unledgered takes the ledger's leader away once a run has nothing left to await.
func unledgered(k *consumertest.Kafka) (on func(redrive.Event), f func() *kfake.FaultHandle) {
	var watching time.Time
	var fault *kfake.FaultHandle
	return func(e redrive.Event) {
		if e.State == redrive.Watching && watching.IsZero() {
			watching = time.Now()
		}
		if fault == nil && !watching.IsZero() && e.Counts.Pending == 0 && time.Since(watching) > 2500*time.Millisecond {
			fault = k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq.ledger", Err: kerr.NotLeaderForPartition, Count: -1})
		}
	}, func() *kfake.FaultHandle { return fault }
}

// It ended, and had to be resumed by hand.
func TestEngine_WaitsUntilItCanWriteItsEnd(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 5, succeeding)
		r := redriver(t, k)
		on, fault := unledgered(k)
		removes := false
		o, err := r.Run(t.Context(), plan(t, r), ann(redrive.Pace{Canary: -1, Ramp: -1, Window: 3 * time.Second}, func(e redrive.Event) {
			if on(e); fault() != nil && !removes {
				removes = true
				time.AfterFunc(time.Minute, fault().Remove)
			}
		}))
		if err != nil || o.State != redrive.Done || o.Counts.Succeeded != 5 || fault().Hits() == 0 {
			t.Errorf("the run ended with %v, and %+v", err, o)
		}
	})
}

func TestEngine_CanBeStoppedBeforeItWritesItsEnd(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 5, succeeding)
		r, p := planned(t, k)
		on, fault := unledgered(k)
		ctx, cancel := context.WithCancel(t.Context())
		var stopped time.Time
		o, err := r.Run(ctx, p, ann(redrive.Pace{Canary: -1, Ramp: -1, Window: 3 * time.Second}, func(e redrive.Event) {
			if on(e); fault() != nil && stopped.IsZero() {
				stopped = time.Now().Add(time.Minute)
				time.AfterFunc(time.Minute, cancel)
			}
		}))
		if !errors.Is(err, context.Canceled) || o.State.Finished() || !o.Ended.IsZero() || time.Since(stopped) > 30*time.Second {
			t.Errorf("after %v the run ended with %v, and %+v", time.Since(stopped), err, o)
		}
		fault().Remove()
		succeeds(t, 5)(r.Resume(t.Context(), "orders.dlq", p.ID, ann(redrive.Pace{}, nil)))
	})
}
