package redrive_test

import (
	"context"
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

// Whether and how the end of a transaction is answered, each letter is on its target once.
func TestSender_SendsEachLetterOnceThroughFaults(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	for name, fault := range map[string]kfake.Fault{
		"a commit without a known end":    {Keys: []kmsg.Key{kmsg.EndTxn}, Err: kerr.UnknownServerError, Count: 1},
		"commits that are refused":        {Keys: []kmsg.Key{kmsg.EndTxn}, Err: kerr.CoordinatorNotAvailable, Count: 3},
		"a producer that is fenced":       {Keys: []kmsg.Key{kmsg.EndTxn}, Err: kerr.ProducerFenced, Count: 1},
		"copies that are refused":         {Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.retry.5s", Err: kerr.NotEnoughReplicas, Count: 3},
		"an epoch that is over":           {Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.retry.5s", Err: kerr.InvalidProducerEpoch, Count: 1},
		"a ledger that refuses":           {Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq.ledger", Err: kerr.NotEnoughReplicas, Count: 3},
		"offsets that can't be fetched":   {Keys: []kmsg.Key{kmsg.OffsetFetch}, Err: kerr.CoordinatorLoadInProgress, Count: 5},
		"a dead-letter topic that stalls": {Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders.dlq", Err: kerr.UnknownServerError, Count: 3},
	} {
		virtual(t, name, func(t *testing.T, k *consumertest.Kafka) {
			s := fixed(t, k, 150)
			r, p := planned(t, k)
			var f *kfake.FaultHandle
			began := time.Now()
			succeeds(t, 150)(r.Run(t.Context(), p, ann(redrive.Pace{Rate: 500, Canary: -1, Ramp: -1}, func(redrive.Event) {
				if f == nil && time.Since(began) > 100*time.Millisecond {
					f = k.Cluster.Fault(fault)
				}
			})))
			// The run ends its open transaction, which holds up committed readers of the target,
			// before the broker does.
			if took := time.Since(began); took > 38*time.Second {
				t.Errorf("it took %v, with a window of 30 s", took)
			}
			if f == nil || f.Hits() == 0 {
				t.Error("there was no fault")
			}
			s.ranOnce(t, 150)
			onTheirTargets(t, k, p.ID, 150)
		})
	}
}

// onTheirTargets checks that the ledger says of n letters of a run where the copy of each stands
// that a committed reader sees.
//
// A run that took itself again after a fault, or was resumed, took down the place of a copy in the
// transaction that was aborted, which its watch had seen. The group's offset is past that one
// sooner, and the letter had succeeded before it ran.
func onTheirTargets(t *testing.T, k *consumertest.Kafka, run string, n int) {
	t.Helper()
	targets := map[string]string{}
	err := ledgerOf(k).Read(t.Context(), nil, func(n *dlq.LedgerRecord) {
		if n.Entry.Run == run {
			targets[headers.Position{Topic: "orders.dlq", Partition: n.Record.Partition, Offset: n.Letter}.String()] = n.Entry.Target.String()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for partition := range int32(3) {
		for _, r := range at(t, k, "orders.retry.5s", partition) {
			m := metaOf(t, r)
			if m.Redrive.ID != run {
				continue
			}
			from, at := m.Redrive.From.String(), headers.Position{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset}
			if targets[from] != at.String() {
				t.Errorf("letter %s is at %v, and the ledger says at %q", from, at, targets[from])
			}
			delete(targets, from)
			n--
		}
	}
	if n != 0 || len(targets) > 0 {
		t.Errorf("%d letters are not on their target, or too often, and of %d only the ledger says so", n, len(targets))
	}
}

// The next transaction is written while the broker takes three seconds for the commit of the one
// before. Then new traffic fails.
func TestSender_CommitsNothingAfterAnAbort(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		s := letters(t, k, 300, nil)
		s.set(func(ctx context.Context, r *kgo.Record) error {
			if string(r.Value) == "bad" {
				return failing("tax")(ctx, r)
			}
			return nil
		})
		r, p := planned(t, k)
		var holds atomic.Bool
		k.Cluster.ControlKey(int16(kmsg.EndTxn), func(kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			if holds.CompareAndSwap(true, false) {
				k.Cluster.SleepControl(func() { time.Sleep(3 * time.Second) })
			}
			return nil, nil, false
		})
		o, err := r.Run(t.Context(), p, ann(redrive.Pace{Rate: 100, Canary: -1, Ramp: -1}, first(sentOver(20), func() {
			holds.Store(true)
			time.AfterFunc(500*time.Millisecond, func() { k.Produce(&kgo.Record{Topic: "orders", Value: []byte("bad")}) })
		})))
		abortedAgain(t, o, err, "new traffic fails with tax")
		visible := len(on(t, k, "orders.retry.5s"))
		written := len(at(t, k, "orders.retry.5s", 0, kgo.FetchIsolationLevel(kgo.ReadUncommitted())))
		if int64(visible) != o.Counts.Sent || written <= visible {
			t.Errorf("%d copies are visible of %d that were written; the outcome is %+v", visible, written, o)
		}
	})
}

// The broker takes three seconds for a commit, and then does not know how it ended. Meanwhile the
// next transaction is written. Its letters would overtake those of the one before.
func TestSender_CommitsInOrder(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		fixed(t, k, 300)
		r, p := planned(t, k)
		var holds, held atomic.Bool
		var early atomic.Int64
		k.Cluster.Control(func(req kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			switch req := req.(type) {
			case *kmsg.InitProducerIDRequest: // the run claims itself again
				held.Store(false)
			case *kmsg.EndTxnRequest:
				if holds.CompareAndSwap(true, false) {
					held.Store(true)
					k.Cluster.SleepControl(func() { time.Sleep(3 * time.Second) })
					resp := req.ResponseKind().(*kmsg.EndTxnResponse)
					resp.ErrorCode = kerr.UnknownServerError.Code
					return resp, nil, true
				}
				if held.Load() && req.Commit {
					early.Add(1)
				}
			}
			return nil, nil, false
		})
		begun := false
		succeeds(t, 300)(r.Run(t.Context(), p, ann(redrive.Pace{Rate: 100, Canary: -1, Ramp: -1}, first(sentOver(20), func() {
			begun = true
			holds.Store(true)
		}))))
		if n := early.Load(); n > 0 || !begun || holds.Load() {
			t.Errorf("%d transactions were committed before the one before them", n)
		}
		onTheirTargets(t, k, p.ID, 300)
	})
}
