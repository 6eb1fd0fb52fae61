package redrive_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive"
)

// The watch of a resumed run reads from where it first began: earlier failures must not look new.
func TestWatch_OldFailuresAbortNoResumedRun(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		s := letters(t, k, 200, nil)
		r, p := planned(t, k)
		stopped(t, r, p, redrive.Pace{Canary: -1, Rate: 2, Ramp: -1, Tolerate: 1000}, 20)
		s.set(failing("other"))
		k.DeadLettered(k.Produce(records(100, "y")...)[99], "terminal")
		s.set(succeeding)
		time.Sleep(time.Hour)
		o, err := r.Resume(t.Context(), "orders.dlq", p.ID, ann(redrive.Pace{}, nil))
		if c := o.Counts; err != nil || c.Sent != 200 || c.Failed < 20 || c.Failed+c.Succeeded != 200 {
			t.Errorf("the run ended with %v, and %+v", err, o)
		}
	})
}

// The clock of the process that redrives letters may be wrong by any amount.
func TestWatch_SeesNewFailuresWhateverTheClocks(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"behind": -time.Hour, "ahead": time.Hour} {
		virtual(t, name, func(t *testing.T, k *consumertest.Kafka) {
			letters(t, k, 3, succeeding)
			alter(t, k, "orders.dlq", "message.timestamp.type", "CreateTime")
			letter := on(t, k, "orders.dlq")[0]
			r := redriver(t, k)
			o, err := r.Run(t.Context(), plan(t, r), ann(redrive.Pace{Canary: -1}, first(watching, func() {
				m := metaOf(t, letter)
				m.Original.Offset = 1000
				go k.Produce(&kgo.Record{Topic: "orders.dlq", Value: []byte("x"), Headers: m.Append(nil), Timestamp: time.Now().Add(off)})
			})))
			abortedAgain(t, o, err, "new traffic fails with tax")
		})
	}
}

// The watch reads uncommitted records. A record of an aborted transaction is not a letter's
// position.
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
		if _, err := r.Run(ctx, p, ann(redrive.Pace{Canary: -1, Ramp: -1, Rate: 1, Burst: 1}, func(e redrive.Event) {
			if e.Counts.Sent == 1 {
				once.Do(func() { abortedCopy(t, k, p.ID, 2) })
			}
			if e.Counts.Succeeded == 2 && e.Counts.Sent == 3 {
				stop()
			}
		})); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		resumed := time.Now()
		var late sync.Once
		o, err := r.Resume(t.Context(), "orders.dlq", p.ID, ann(redrive.Pace{}, func(e redrive.Event) {
			if time.Since(resumed) > 10*time.Second {
				late.Do(func() {
					if c := e.Counts; c.Succeeded != 2 || c.Pending != 1 {
						t.Errorf("while the third runs the counts are %+v", c)
					}
					close(release)
				})
			}
		}))
		ends(t, redrive.Counts{Succeeded: 2, Failed: 1})(o, err)
	})
}

// abortedCopy leaves a copy of a letter of a run in a transaction that is aborted.
func abortedCopy(t *testing.T, k *consumertest.Kafka, run string, letter int64) {
	t.Helper()
	m := headers.Meta{
		Original: headers.Position{Topic: "orders", Offset: letter, Timestamp: time.Now()}, Group: "billing", NotBefore: time.Now(), Hops: 1,
		Redrive: headers.Redrive{ID: run, Count: 1, From: headers.Position{Topic: "orders.dlq", Offset: letter}},
	}
	aborted(t, k, &kgo.Record{Topic: "orders.retry.5s", Value: []byte("x"), Headers: m.Append(nil)})
}

// The topics' ends at the start of the watch separate old records from new ones. When the ends were
// not known, all records counted as new.
func TestWatch_WaitsWhereAPartitionsEndIsUnknown(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		s := letters(t, k, 3, succeeding)
		r, p := planned(t, k)
		stopped(t, r, p, redrive.Pace{Canary: -1, Ramp: -1}, 3)
		time.Sleep(time.Minute) // what was sent has run
		s.set(failing("tax"))
		k.DeadLettered(k.Produce(&kgo.Record{Topic: "orders", Value: []byte("new")})[0], "terminal")
		s.set(succeeding)
		time.Sleep(10 * time.Minute)
		blind := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: "orders.dlq", Err: kerr.LeaderNotAvailable, Count: 1, When: func(req kmsg.Request) bool {
			return listing(req, -1, "orders.dlq") && listing(req, -1, "orders.retry.5s")
		}})
		o, err := r.Resume(t.Context(), "orders.dlq", p.ID, ann(redrive.Pace{}, nil))
		if err != nil || o.Counts.Succeeded != 3 || blind.Hits() != 1 {
			t.Errorf("after %d readings that failed the run ended with %v, and %+v", blind.Hits(), err, o.Counts)
		}
	})
}

// The partition has a record that the watch did not know of as it began.
func TestWatch_ReadsPartitionsThatAreAdded(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 100, succeeding)
		r, p := planned(t, k)
		succeeds(t, 100)(r.Run(within(t, 10*time.Minute), p, ann(redrive.Pace{}, first(sentOver(19), func() {
			cl := clientOf(t, k, kgo.RecordPartitioner(kgo.ManualPartitioner()))
			if _, err := kadm.NewClient(cl).CreatePartitions(t.Context(), 1, "orders.dlq", "orders.dlq.ledger"); err != nil {
				t.Error(err)
			}
			if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "orders.dlq", Partition: 1, Value: []byte("of another program")}).FirstErr(); err != nil {
				t.Error(err)
			}
		}))))
	})
}
