package redrive_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/redrive"
)

// wrote writes records in a transaction of an id, and returns the place of the first.
func wrote(t *testing.T, k *consumertest.Kafka, id string, end kgo.TransactionEndTry, all ...*kgo.Record) headers.Position {
	t.Helper()
	cl := clientOf(t, k, kgo.TransactionalID(id), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	defer cl.Close()
	err := cl.BeginTransaction()
	if err == nil {
		err = cl.ProduceSync(t.Context(), all...).FirstErr()
	}
	if err == nil {
		err = client.EndTransaction(t.Context(), cl, end, all...)
	}
	if err != nil {
		t.Fatal(err)
	}
	return headers.Position{Topic: all[0].Topic, Partition: all[0].Partition, Offset: all[0].Offset}
}

// What an earlier run left open on a partition ends as it ended on the others. A copy that has an
// entry was committed: aborted, its letter would be lost. So was an entry whose copy is there:
// aborted, its letter would be sent again. Anything else was not.
func TestClaim_EndsWhatIsLeftOpenAsItEndedElsewhere(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	const ledger, id = "orders.dlq.ledger", "siding-redrive-orders.dlq-a"
	entry := func(of headers.Position) *kgo.Record {
		e := dlq.Entry{State: dlq.Redriven, Run: "earlier", At: time.Now(), Target: of}
		return e.Record(ledger, 1, 1_000_000)
	}
	archived := func() *kgo.Record { return &kgo.Record{Topic: "archive", Value: []byte("copy")} }
	behind := func(t *testing.T, k *consumertest.Kafka) headers.Position {
		other := clientOf(t, k, kgo.TransactionalID("other"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		if err := errors.Join(other.BeginTransaction(), other.ProduceSync(t.Context(), archived()).FirstErr()); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(5*time.Second, func() { _ = other.EndTransaction(context.Background(), kgo.TryAbort) })
		return wrote(t, k, id, kgo.TryCommit, entry(wrote(t, k, "another", kgo.TryCommit, archived())))
	}
	for name, c := range map[string]struct {
		commit bool
		left   func(t *testing.T, k *consumertest.Kafka) headers.Position // the open record
	}{
		"a copy with an entry": {true, func(t *testing.T, k *consumertest.Kafka) headers.Position {
			at := wrote(t, k, id, kgo.TryCommit, archived())
			k.Produce(entry(at))
			return at
		}},
		"a copy without one, before another producer's that has one": {false, func(t *testing.T, k *consumertest.Kafka) headers.Position {
			at := wrote(t, k, id, kgo.TryCommit, archived())
			k.Produce(entry(wrote(t, k, "another", kgo.TryCommit, archived())))
			return at
		}},
		"an entry whose copy is there": {true, func(t *testing.T, k *consumertest.Kafka) headers.Position {
			return wrote(t, k, id, kgo.TryCommit, entry(wrote(t, k, "another", kgo.TryCommit, archived())))
		}},
		"entries, and the copy of one of them was aborted": {false, func(t *testing.T, k *consumertest.Kafka) headers.Position {
			there := wrote(t, k, "another", kgo.TryCommit, archived())
			return wrote(t, k, id, kgo.TryCommit, entry(there), entry(wrote(t, k, id, kgo.TryAbort, archived())))
		}},
		"an entry whose copy is behind what another process left open": {true, behind},
		"an entry whose copy is behind what the run left open":         {false, behind},
		"an entry whose copy was aborted": {false, func(t *testing.T, k *consumertest.Kafka) headers.Position {
			return wrote(t, k, id, kgo.TryCommit, entry(wrote(t, k, id, kgo.TryAbort, archived())))
		}},
	} {
		virtual(t, name, func(t *testing.T, k *consumertest.Kafka) {
			fixed(t, k, 20)
			k.CreateTopic("archive", 3)
			r := redriver(t, k)
			p := planOf(t, r, redrive.Selection{Topic: "orders.dlq", Target: redrive.Target{Topic: "archive"}})
			at := c.left(t, k)
			l := &leftover{topic: at.Topic, partition: at.Partition, open: at.Offset, commit: c.commit}
			if strings.HasSuffix(name, "the run left open") {
				l.beside = "archive"
			}
			l.stands(t, k)
			if o, err := r.Run(t.Context(), p, ann(redrive.Pace{}, nil)); err != nil || o.Counts.Sent != 20 {
				t.Errorf("the run ended with %v, and %+v", err, o)
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			if !l.ended || l.wrong || l.early {
				t.Errorf("it ended: %v, otherwise: %v; something was written before: %v", l.ended, l.wrong, l.early)
			}
		})
	}
}

// Who resumes a run raises the fence as who begins one does.
func TestClaim_OfAResumedRunEndsWhatItLeftOpen(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]*leftover{
		"on the target": {topic: "orders.retry.5s", partition: 1},
		"on the ledger": {topic: "orders.dlq.ledger", partition: 0},
	} {
		virtual(t, name, func(t *testing.T, k *consumertest.Kafka) {
			fixed(t, k, 20)
			r, p := planned(t, k)
			stopped(t, r, p, redrive.Pace{}, 0)
			l.stands(t, k)
			succeeds(t, 20)(r.Resume(t.Context(), "orders.dlq", p.ID, ann(redrive.Pace{}, nil)))
			l.mu.Lock()
			defer l.mu.Unlock()
			if !l.ended || l.early {
				t.Errorf("it ended: %v; something was written before: %v", l.ended, l.early)
			}
		})
	}
}
