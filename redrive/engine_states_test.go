package redrive_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive"
)

func TestEngine_WaitsForTheCanary(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		release := make(chan struct{})
		letters(t, k, 20, func(ctx context.Context, r *kgo.Record) error {
			select {
			case <-release:
				return nil
			case <-ctx.Done():
				return nil
			}
		})
		r := redriver(t, k)
		began := time.Now()
		var waited time.Duration
		o, err := r.Run(t.Context(), plan(t, r), ann(redrive.Pace{}, func(e redrive.Event) {
			if e.State == redrive.Waiting && waited == 0 {
				waited = time.Since(began)
				if e.Counts.Sent != 1 || !strings.Contains(e.Waiting, "canary") {
					t.Errorf("%+v", e)
				}
				close(release)
			}
		}))
		if err != nil || o.Counts.Succeeded != 20 || waited < 5*time.Minute || waited > 5*time.Minute+2*time.Second {
			t.Errorf("the run ended with %v, and %+v; it waited after %v", err, o, waited)
		}
	})
}

func TestEngine_WaitsWhileTheGroupIsBehind(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		var slow atomic.Bool
		slow.Store(true)
		letters(t, k, 100, func(ctx context.Context, r *kgo.Record) error {
			if slow.Load() {
				time.Sleep(5 * time.Second)
			}
			return nil
		})
		r := redriver(t, k)
		behind, most := 0, int64(0)
		o, err := r.Run(t.Context(), plan(t, r), ann(redrive.Pace{Canary: -1, Ramp: -1, MaxLag: 10}, func(e redrive.Event) {
			most = max(most, e.Counts.Pending)
			if strings.Contains(e.Waiting, "behind") {
				if behind++; behind == 20 {
					slow.Store(false)
				}
			}
		}))
		if err != nil || o.Counts.Succeeded != 100 || behind < 20 || most > 10+8 {
			t.Errorf("the run ended with %v, and %+v; it was behind %d times, with up to %d", err, o, behind, most)
		}
	})
}

// The group's lag on a named target is read after the outcomes, and that alone can fail.
func TestEngine_RecordsVerdictsOfAPollThatFailed(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 20, succeeding)
		r := redriver(t, k)
		p := planOf(t, r, redrive.Selection{Topic: "orders.dlq", Target: redrive.Target{Topic: "orders"}})
		var fault *kfake.FaultHandle
		began := time.Now()
		o, err := r.Run(t.Context(), p, ann(redrive.Pace{Canary: -1, Ramp: -1}, func(redrive.Event) {
			switch {
			case fault == nil:
				fault = k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: "orders", Err: kerr.UnknownServerError, Count: -1})
			case time.Since(began) > 5*time.Second:
				fault.Remove()
			}
		}))
		if err != nil || o.Counts.Succeeded != 20 || fault.Hits() == 0 {
			t.Errorf("the run ended with %v, and %+v; %d readings failed", err, o, fault.Hits())
		}
		if got := states(t, k); got[dlq.Succeeded] != 20 {
			t.Errorf("the ledger says %v", got)
		}
	})
}

// Letters of another class come faster than the run redrives. It is to abort after a window, and
// just then its transaction fails.
func TestEngine_AbortsThoughItCannotWriteThat(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		fixed(t, k, 250, "sku")
		fault := k.Cluster.Fault(kfake.Fault{
			Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq.ledger", Err: kerr.InvalidProducerEpoch,
			When: writes(`"state":"aborted"`),
		})
		r := redriver(t, k, kgo.ProducerBatchCompression(kgo.NoCompression()))
		p := plan(t, r)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { // 10 a second of another class, where 5 are redriven, until it is noticed
			defer close(done)
			for fault.Hits() == 0 && ctx.Err() == nil {
				k.Produce(&kgo.Record{Topic: "orders", Value: []byte("sku:new")})
				time.Sleep(100 * time.Millisecond)
			}
		}()
		began := time.Now()
		o, err := r.Run(t.Context(), p, ann(redrive.Pace{Rate: 5, Canary: -1, Ramp: -1}, nil))
		took := time.Since(began)
		stop()
		<-done
		if abortedAgain(t, o, err, "fills faster"); took < 30*time.Second || took > 40*time.Second {
			t.Errorf("it took %v, want a window", took)
		}
		sent := o.Counts.Sent
		if now, err := r.Status(t.Context(), "orders.dlq", p.ID); err != nil || now.State != redrive.Aborted || now.Counts.Sent != sent {
			t.Errorf("the ledger says %+v, %v", now, err)
		}
	})
}

// A poll of the outcomes takes as long as the brokers do. An abort must not wait for it.
func TestEngine_AbortsWithoutWaitingForAPoll(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 100, func(ctx context.Context, r *kgo.Record) error {
			time.Sleep(3 * time.Second)
			return failing("tax")(ctx, r)
		})
		r, p := planned(t, k)
		began := time.Now()
		o, err := r.Run(t.Context(), p, ann(redrive.Pace{Canary: -1, Rate: 10}, first(sentOver(-1), func() {
			k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetFetch}, Err: kerr.CoordinatorLoadInProgress, Count: -1})
		})))
		abortedAgain(t, o, err, "")
		if d := time.Since(began); d > 8*time.Second {
			t.Errorf("it took %v", d)
		}
	})
}

// The window does not count while the dead-letter topic cannot be read.
func TestEngine_IsNotDoneWithoutAPoll(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		release := make(chan struct{})
		letters(t, k, 20, func(ctx context.Context, r *kgo.Record) error {
			<-release
			return failing("tax")(ctx, r)
		})
		r, p := planned(t, k)
		var (
			fault  *kfake.FaultHandle
			blind  time.Time
			waited string
		)
		o, err := r.Run(t.Context(), p, ann(redrive.Pace{Canary: -1, Ramp: -1}, func(e redrive.Event) {
			if e.State == redrive.Watching && e.Waiting != "" {
				waited = e.Waiting
			}
			switch {
			case fault == nil && e.Counts.Sent == 20:
				fault = k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders.dlq", Err: kerr.UnknownServerError, Count: -1})
				blind = time.Now()
				close(release)
			case fault != nil && time.Since(blind) > 2*time.Minute:
				fault.Remove()
			}
		}))
		abortedAgain(t, o, err, "failed again with tax")
		if d := o.Ended.Sub(blind); d < 2*time.Minute || d > 2*time.Minute+30*time.Second {
			t.Errorf("it ended after %v", d)
		}
		if !strings.Contains(waited, "the failures within it are not known yet") {
			t.Errorf("it said %q", waited)
		}
	})
}

// The cause of the run's end is that the class is back, whatever else failed afterwards.
func TestEngine_ReportsWhyItAbortsWithoutPermission(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 20, nil)
		k.Cluster.Fault(kfake.Fault{
			Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq.ledger", Err: kerr.TopicAuthorizationFailed, Count: -1,
			When: writes(`"state":"aborted"`),
		})
		r := redriver(t, k, kgo.ProducerBatchCompression(kgo.NoCompression()))
		o, err := r.Run(t.Context(), plan(t, r), ann(redrive.Pace{}, nil))
		if again, ok := errors.AsType[*redrive.FailedAgainError](err); !ok || !strings.Contains(again.Cause, "failed again with tax") {
			t.Errorf("the run ended with %v, and %+v", err, o)
		}
		if _, ok := errors.AsType[*redrive.DeniedError](err); !ok {
			t.Errorf("that it could not be written down is not in %v", err)
		}
	})
}

// Who follows a run learns of its next state when it begins, and of its ramp: the record was
// written every five seconds, so that others saw a canary that was long over.
func TestEngine_RecordsANewStateAtOnce(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 30, succeeding)
		r, p := planned(t, k)
		since := map[redrive.State]time.Time{}
		var began redrive.Outcome
		succeeds(t, 30)(r.Run(t.Context(), p, ann(redrive.Pace{Rate: 5, Window: 8 * time.Second}, func(e redrive.Event) {
			at, known := since[e.State]
			if !known {
				since[e.State] = time.Now()
				return
			}
			if d := time.Since(at); e.State.Finished() || d < time.Second || d > 2*time.Second {
				return
			}
			is, err := r.Progress(t.Context(), "orders.dlq", p.ID)
			if err != nil || is.State != e.State {
				t.Errorf("a second after %s began the record has %s, %v", e.State, is.State, err)
			}
			if is.State == redrive.Sending {
				began = is
			}
		})))
		if got := since[redrive.Sending].Sub(began.RampBegan).Abs(); got > time.Second {
			t.Errorf("the ramp began %v off", got)
		}
		for after, want := range map[time.Duration]float64{0: 0.5, 15 * time.Second: 2.75, time.Minute: 5} {
			if got := began.RateAt(began.RampBegan.Add(after)); math.Abs(got-want) > 0.01 {
				t.Errorf("after %v the rate is %g, want %g", after, got, want)
			}
		}
		if got := (&redrive.Outcome{Pace: began.Pace}).RateAt(time.Now()); math.Abs(got-0.5) > 0.01 {
			t.Errorf("before the ramp the rate is %g", got)
		}
	})
}

// Another process that asks how far a run is learns when its window ends, and at which pace it
// goes.
func TestEngine_RecordsTheEndOfItsWindow(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 20, succeeding)
		r, p := planned(t, k)
		pace := redrive.Pace{Canary: -1, Ramp: -1, Rate: 10, Window: time.Minute}
		var early, late redrive.Outcome
		now := func() redrive.Outcome {
			o, err := r.Status(t.Context(), "orders.dlq", p.ID)
			if err != nil {
				t.Error(err)
			}
			return o
		}
		o, err := r.Run(t.Context(), p, ann(pace, func(e redrive.Event) {
			if e.State == redrive.Sending && !e.WindowEnds.IsZero() {
				t.Errorf("while it sends, its window ends at %v", e.WindowEnds)
			}
			if early.ID == "" && e.State == redrive.Watching {
				early = e.Outcome
			}
			if late.ID == "" && e.State == redrive.Watching && time.Until(e.WindowEnds) < 50*time.Second {
				late = now()
			}
		}))
		succeeds(t, 20)(o, err)
		if left := time.Until(early.WindowEnds); !late.WindowEnds.Equal(early.WindowEnds) || left > 0 || left < -5*time.Second {
			t.Errorf("the window ended %v ago by the event at its beginning, and at %v by the status, not %v", -left, late.WindowEnds, early.WindowEnds)
		}
		if late.Pace.Rate != 10 || late.Pace.Window != time.Minute || !o.WindowEnds.IsZero() || !now().WindowEnds.IsZero() {
			t.Errorf("the pace is %+v, and after its end the run is %+v", late.Pace, o)
		}
	})
}

// A run that was stopped or aborted while it watched had a window that went on, for those who ask
// the ledger.
func TestEngine_ARunThatNobodyDrivesHasNoWindow(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, context.CancelFunc, *redrive.Redriver, string){
		"stopped": func(_ *testing.T, stop context.CancelFunc, _ *redrive.Redriver, _ string) { stop() },
		"aborted": func(t *testing.T, _ context.CancelFunc, r *redrive.Redriver, id string) {
			if err := r.Abort(t.Context(), "orders.dlq", id, byAnn); err != nil {
				t.Error(err)
			}
		},
	} {
		virtual(t, name, func(t *testing.T, k *consumertest.Kafka) {
			letters(t, k, 5, succeeding)
			r, p := planned(t, k)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			// after a heartbeat, so that the ledger has the window
			recorded := func(e redrive.Event) bool {
				return e.State == redrive.Watching && time.Until(e.WindowEnds) < 59*time.Minute
			}
			_, err := r.Run(ctx, p, ann(redrive.Pace{Canary: -1, Ramp: -1, Window: time.Hour}, first(recorded, func() { go end(t, stop, r, p.ID) })))
			if err == nil {
				t.Error("the run went on to the end of its window")
			}
			if o, err := r.Progress(t.Context(), "orders.dlq", p.ID); err != nil || !o.WindowEnds.IsZero() {
				t.Errorf("it is %+v, %v; want no end of a window", o, err)
			}
		})
	}
}
