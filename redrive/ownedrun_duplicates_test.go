package redrive_test

import (
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
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive"
)

// copied makes a letter, and n records later a duplicate of it: the consumer crashed before it
// committed.
func copied(t *testing.T, k *consumertest.Kafka, n int) {
	t.Helper()
	s := letters(t, k, 1, nil)
	was := on(t, k, "orders.dlq")[0]
	for range n {
		k.Produce(&kgo.Record{Topic: "orders.dlq"})
	}
	k.Produce(&kgo.Record{Topic: "orders.dlq", Value: was.Value, Headers: was.Headers})
	s.set(succeeding)
}

// outlived makes retention delete the first letter, and checks whether its copy is open.
func outlived(t *testing.T, k *consumertest.Kafka, r *redrive.Redriver) {
	t.Helper()
	end := k.Cluster.PartitionInfo("orders.dlq", 0).HighWatermark
	if err := k.Cluster.DeleteRecords("orders.dlq", 0, end-1); err != nil {
		t.Fatal(err)
	}
	if again, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq"}); err == nil {
		t.Errorf("a new plan has %d letters: the record would run twice", again.Letters)
	}
}

// The copy was recorded only if it was in the selection too.
func TestDuplicate_OfARedrivenLetterIsNeverOpen(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	for name, c := range map[string]struct {
		filter dlq.Filter
		apart  int
	}{
		"whatever the filter says":     {dlq.Filter{Ranges: []dlq.Range{dlq.At(0, 0)}}, 0},
		"however far behind it is":     {dlq.Filter{Ranges: []dlq.Range{dlq.At(0, 0)}}, 5_000},
		"with the filter that it fits": {dlq.Filter{}, 0},
	} {
		virtual(t, name, func(t *testing.T, k *consumertest.Kafka) {
			copied(t, k, c.apart)
			r := redriver(t, k)
			p := planOf(t, r, redrive.Selection{Topic: "orders.dlq", Filter: c.filter})
			succeeds(t, p.Letters)(r.Run(t.Context(), p, ann(redrive.Pace{Window: 2 * time.Second}, nil)))
			outlived(t, k, r)
		})
	}
}

// A claim records the copies of letters that are not sent yet. If retention deletes such a letter
// first, its copy is all that is left of the record.
func TestDuplicate_OfALetterThatExpiredUnsentIsOpen(t *testing.T) {
	t.Parallel()
	expire := func(t *testing.T, k *consumertest.Kafka) {
		if err := k.Cluster.DeleteRecords("orders.dlq", 0, 1); err != nil {
			t.Fatal(err)
		}
	}
	for name, lose := range map[string]func(*testing.T, *consumertest.Kafka, *redrive.Redriver){
		"before the run sent it": func(t *testing.T, k *consumertest.Kafka, r *redrive.Redriver) {
			p := plan(t, r)
			expire(t, k)
			ends(t, redrive.Counts{Skipped: map[string]int64{redrive.SkippedExpired: 1}})(r.Run(t.Context(), p, ann(redrive.Pace{Window: time.Second}, nil)))
		},
		"after the run was aborted": func(t *testing.T, k *consumertest.Kafka, r *redrive.Redriver) {
			p := plan(t, r)
			unread := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders.dlq", Err: kerr.LeaderNotAvailable, Count: -1})
			if o := stopped(t, r, p, redrive.Pace{}, 0); o.Counts.Sent != 0 {
				t.Fatalf("the run ended with %+v", o)
			}
			unread.Remove()
			if err := r.Abort(t.Context(), "orders.dlq", p.ID, byAnn); err != nil {
				t.Fatal(err)
			}
			expire(t, k)
		},
	} {
		virtual(t, name, func(t *testing.T, k *consumertest.Kafka) {
			copied(t, k, 0)
			r := redriver(t, k)
			lose(t, k, r)
			ledger := ledgerOf(k)
			p, err := ledger.Prunable(t.Context(), time.Time{}, nil)
			if err != nil || p.Until[0] > 1 {
				t.Errorf("prune would delete %+v, and the copy with it (%v)", p, err)
			}
			succeeds(t, 1)(r.Run(t.Context(), plan(t, r), ann(redrive.Pace{Window: 2 * time.Second}, nil)))
			k.Conserved()
		})
	}
}

// slow runs a function while an answer with records is in flight.
type slow struct {
	once      atomic.Bool
	meanwhile func()
}

func (s *slow) OnBrokerRead(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, _ error) {
	if key == int16(kmsg.Fetch) && !s.once.Swap(true) {
		s.meanwhile()
	}
}

// A plan reads the ledger, then the letters. A letter that was resolved in between, and failed
// again after that, must not look like the copy of an open letter.
func TestDuplicate_OfALetterResolvedDuringThePlanIsOpen(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 2, succeeding)
		was := on(t, k, "orders.dlq")[0]
		time.Sleep(time.Minute)
		// so that there is something to read
		k.Produce((&dlq.Entry{State: dlq.Expired, At: time.Now()}).Record("orders.dlq.ledger", 0, 99))
		meanwhile := &slow{meanwhile: func() {
			time.Sleep(2 * time.Second)
			l := ledgerOf(k)
			first := dlq.Filter{Ranges: []dlq.Range{dlq.At(0, 0)}}
			if n, err := l.Discard(t.Context(), first, dlq.Cursor{}, dlq.DiscardOptions{By: "bob", Why: "no use"}); n != 1 || err != nil {
				t.Error(n, err)
			}
			time.Sleep(2 * time.Second)
			m := metaOf(t, was)
			m.FailedAt = time.Now() // the group was rewound, and it fails once more
			k.Produce(&kgo.Record{Topic: "orders.dlq", Value: was.Value, Headers: m.Append(headers.Strip(was.Headers))})
		}}
		r := redriver(t, k, kgo.WithHooks(meanwhile))
		if o, err := r.Run(t.Context(), plan(t, r), ann(redrive.Pace{Window: time.Second}, nil)); err != nil || o.Counts.Sent != 1 {
			t.Fatalf("the run ended with %v, and %+v", err, o)
		}
		var open []int64
		for l, err := range ledgerOf(k).Letters(t.Context(), dlq.Filter{}, dlq.Cursor{}, dlq.OpenOnly) {
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, l.Record.Offset)
		}
		if len(open) != 1 || open[0] != 2 {
			t.Errorf("open are %v, want 2: it failed after its letter was discarded", open)
		}
	})
}

// The outcome of a redriven letter is unknown, and the letter has expired. Its copy may be
// processed twice, like the letter itself.
func TestDuplicate_OfALetterThatIsUnknownIsWarnedOf(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		copied(t, k, 0)
		for offset, e := range []dlq.Entry{{State: dlq.Unknown}, {State: dlq.Duplicate, Target: headers.Position{Topic: "orders.dlq"}}} {
			e.At = time.Now()
			k.Produce(e.Record("orders.dlq.ledger", 0, int64(offset)))
		}
		if err := k.Cluster.DeleteRecords("orders.dlq", 0, 1); err != nil {
			t.Fatal(err)
		}
		if p := plan(t, redriver(t, k)); p.Letters != 1 || !strings.Contains(strings.Join(p.Warnings, "\n"), "processed twice") {
			t.Errorf("of %d letters the plan warns with %q", p.Letters, p.Warnings)
		}
	})
}

// A process that took over a run did not know the outcomes that the former owner had not written
// yet.
func TestDuplicate_IsRecordedBeforeItsLetterIsSent(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		copied(t, k, 0)
		r := redriver(t, k)
		var f *kfake.FaultHandle
		o, err := r.Run(t.Context(), plan(t, r), ann(redrive.Pace{Window: time.Second}, func(redrive.Event) {
			if f == nil {
				f = k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.EndTxn}, Err: kerr.UnknownServerError, Count: 1})
			}
		}))
		if err != nil || o.Counts.Succeeded != 1 || f.Hits() != 1 {
			t.Fatal(o, err, f.Hits())
		}
		outlived(t, k, r)
	})
}
