package redrive_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive"
)

// The watch of a run that is resumed reads from where it began: what came then did not come now.
func TestWatch_OldFailuresAbortNoResumedRun(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		s := letters(t, k, 200, nil)
		r, p := planned(t, k)
		stopped(t, r, p, redrive.Pace{Canary: -1, Rate: 2, Ramp: -1, Tolerate: 1000}, 20)
		s.set(failing("other"))
		k.DeadLettered(k.Produce(records(100, "y")...)[99], "terminal")
		s.set(succeeding)
		time.Sleep(time.Hour)
		o, err := r.Resume(t.Context(), "orders.dlq", p.ID, nil)
		if c := o.Counts; err != nil || c.Sent != 200 || c.Failed < 20 || c.Failed+c.Succeeded != 200 {
			t.Errorf("the run ended with %v, and %+v", err, o)
		}
	})
}

func TestPoller_NothingIsSentBeforeTheFirstPoll(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		release := make(chan struct{})
		letters(t, k, 300, func(context.Context, *kgo.Record) error {
			<-release
			return classify.Retryable(classify.As(errors.New("no"), "tax"))
		})
		r, p := planned(t, k)
		before := stopped(t, r, p, redrive.Pace{Canary: -1, Rate: 50, Ramp: -1, MaxLag: -1}, 100)
		close(release)
		time.Sleep(10 * time.Second)
		slow := time.Now().Add(2 * time.Second)
		k.Cluster.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			time.Sleep(5 * time.Millisecond) // a client asks again at once
			return nil, nil, false
		})
		k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders.retry.30s", Count: -1, When: func(req kmsg.Request) bool {
			return req.(*kmsg.FetchRequest).IsolationLevel == 0 && time.Now().Before(slow) // the watch's
		}})
		o, err := r.Resume(t.Context(), "orders.dlq", p.ID, nil)
		reappeared(t, o, err, "")
		if o.Counts.Sent != before.Counts.Sent {
			t.Errorf("%d were sent before it was resumed, and then %d", before.Counts.Sent, o.Counts.Sent)
		}
	})
}

// The clock of whoever brings letters back may be wrong by as much as it likes.
func TestWatch_SeesNewFailuresWhateverTheClocks(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"behind": -time.Hour, "ahead": time.Hour} {
		virtual(t, name, func(t *testing.T, k *consumertest.Kafka) {
			letters(t, k, 3, succeeding)
			alter(t, k, "orders.dlq", "message.timestamp.type", "CreateTime")
			letter := on(t, k, "orders.dlq")[0]
			r := redriver(t, k)
			var once sync.Once
			o, err := r.Run(t.Context(), plan(t, r), redrive.Pace{Canary: -1}, func(e redrive.Event) {
				if e.State == redrive.Watching {
					once.Do(func() {
						m, err := headers.Parse(letter.Headers)
						if err != nil {
							t.Error(err)
						}
						m.Original.Offset = 1000
						go k.Produce(&kgo.Record{Topic: "orders.dlq", Value: []byte("x"), Headers: m.Append(nil), Timestamp: time.Now().Add(off)})
					})
				}
			})
			reappeared(t, o, err, "new traffic fails with tax")
		})
	}
}

// The run is to abort, and just then its transaction does not go through.
func TestEngine_AbortsThoughItCannotWriteThat(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		fixed(t, k, 500, "sku")
		fault := k.Cluster.Fault(kfake.Fault{
			Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq.ledger", Err: kerr.InvalidProducerEpoch,
			When: writes(`"state":"aborted"`),
		})
		r := redriver(t, k, kgo.ProducerBatchCompression(kgo.NoCompression()))
		p := plan(t, r)
		done := make(chan struct{})
		go func() { // 10 a second of another class, where 5 are brought back, until it is noticed
			defer close(done)
			for fault.Hits() == 0 {
				k.Produce(&kgo.Record{Topic: "orders", Value: []byte("sku:new")})
				time.Sleep(100 * time.Millisecond)
			}
		}()
		o, err := r.Run(t.Context(), p, redrive.Pace{Rate: 5, Canary: -1, Ramp: -1}, nil)
		<-done
		reappeared(t, o, err, "fills faster")
		sent := o.Counts.Sent
		if now, err := r.Status(t.Context(), "orders.dlq", p.ID); err != nil || now.State != redrive.Aborted || now.Counts.Sent != sent {
			t.Errorf("the ledger says %+v, %v", now, err)
		}
	})
}

// A look at the outcomes takes as long as the brokers do; who aborts has no time for that.
func TestEngine_AbortsWithoutWaitingForAPoll(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 100, func(ctx context.Context, r *kgo.Record) error {
			time.Sleep(3 * time.Second)
			return failing("tax")(ctx, r)
		})
		r, p := planned(t, k)
		began := time.Now()
		var once sync.Once
		o, err := r.Run(t.Context(), p, redrive.Pace{Canary: -1, Rate: 10}, func(redrive.Event) {
			once.Do(func() {
				k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetFetch}, Err: kerr.CoordinatorLoadInProgress, Count: -1})
			})
		})
		reappeared(t, o, err, "")
		if d := time.Since(began); d > 8*time.Second {
			t.Errorf("it took %v", d)
		}
	})
}

// The watch reads uncommitted: what a transaction left that was aborted is no letter's place.
func TestWatch_IgnoresCopiesOfAbortedTransactions(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		release := make(chan struct{})
		letters(t, k, 3, func(ctx context.Context, r *kgo.Record) error {
			if r.Offset < 2 {
				return nil
			}
			select {
			case <-release:
				return classify.Terminal(classify.As(errors.New("no"), "other"))
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		r, p := planned(t, k)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var once sync.Once
		if _, err := r.Run(ctx, p, redrive.Pace{Canary: -1, Ramp: -1, Rate: 1, Burst: 1}, func(e redrive.Event) {
			if e.Counts.Sent == 1 {
				once.Do(func() { abortedCopy(t, k, p.ID, 2) })
			}
			if e.Counts.Succeeded == 2 && e.Counts.Sent == 3 {
				stop()
			}
		}); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		resumed := time.Now()
		var late sync.Once
		o, err := r.Resume(t.Context(), "orders.dlq", p.ID, func(e redrive.Event) {
			if time.Since(resumed) > 10*time.Second {
				late.Do(func() {
					if c := e.Counts; c.Succeeded != 2 || c.Pending != 1 {
						t.Errorf("while the third runs the counts are %+v", c)
					}
					close(release)
				})
			}
		})
		if c := o.Counts; err != nil || c.Succeeded != 2 || c.Failed != 1 || c.Pending != 0 {
			t.Errorf("the run ended with %v, and %+v", err, o)
		}
	})
}

// abortedCopy leaves a copy of a letter of a run in a transaction that is aborted.
func abortedCopy(t *testing.T, k *consumertest.Kafka, run string, letter int64) {
	t.Helper()
	cl := clientOf(t, k, kgo.TransactionalID("other"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err := cl.BeginTransaction(); err != nil {
		t.Error(err)
	}
	m := headers.Meta{
		Original: headers.Position{Topic: "orders", Offset: letter, Timestamp: time.Now()}, Group: "billing", NotBefore: time.Now(), Hops: 1,
		Redrive: headers.Redrive{ID: run, Count: 1, From: headers.Position{Topic: "orders.dlq", Offset: letter}},
	}
	if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "orders.retry.5s", Value: []byte("x"), Headers: m.Append(nil)}).FirstErr(); err != nil {
		t.Error(err)
	}
	if err := cl.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
		t.Error(err)
	}
}

// The window says nothing of a dead-letter topic that cannot be read meanwhile.
func TestEngine_IsNotDoneWithoutAPoll(t *testing.T) {
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
		o, err := r.Run(t.Context(), p, redrive.Pace{Canary: -1, Ramp: -1}, func(e redrive.Event) {
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
		})
		reappeared(t, o, err, "failed again with tax")
		if d := o.Ended.Sub(blind); d < 2*time.Minute || d > 2*time.Minute+30*time.Second {
			t.Errorf("it ended after %v", d)
		}
		if !strings.Contains(waited, "what failed within it is not known") {
			t.Errorf("it said %q", waited)
		}
	})
}

// Whoever asks why the run ended is to hear that the class is back, whatever else went wrong then.
func TestEngine_ReportsWhyItAbortsWithoutPermission(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 20, nil)
		k.Cluster.Fault(kfake.Fault{
			Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq.ledger", Err: kerr.TopicAuthorizationFailed, Count: -1,
			When: writes(`"state":"aborted"`),
		})
		r := redriver(t, k, kgo.ProducerBatchCompression(kgo.NoCompression()))
		o, err := r.Run(t.Context(), plan(t, r), redrive.Pace{}, nil)
		if again, ok := errors.AsType[*redrive.FailedAgainError](err); !ok || !strings.Contains(again.Cause, "failed again with tax") {
			t.Errorf("the run ended with %v, and %+v", err, o)
		}
		if _, ok := errors.AsType[*redrive.DeniedError](err); !ok {
			t.Errorf("that it could not be written down is not in %v", err)
		}
	})
}

// writes picks the requests in which these words are written, by a client that does not compress.
func writes(words string) func(kmsg.Request) bool {
	return func(req kmsg.Request) bool {
		for _, t := range req.(*kmsg.ProduceRequest).Topics {
			for _, p := range t.Partitions {
				if bytes.Contains(p.Records, []byte(words)) {
					return true
				}
			}
		}
		return false
	}
}
