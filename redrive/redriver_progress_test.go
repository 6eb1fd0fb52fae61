package redrive_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
	"github.com/sidingkafka/siding/redrive"
)

// A client that follows a run asks every second, and must not read all of the ledger for that.
func TestProgress_IsWhatTheRunRecordedLast(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 100, succeeding)
		r, p := planned(t, k)
		other := redriver(t, k)
		if _, err := other.Progress(t.Context(), "orders.dlq", p.ID); !errors.Is(err, redrive.ErrNoRun) {
			t.Errorf("before the run: %v", err)
		}
		var seen []int64
		asked := time.Now()
		o, err := r.Run(t.Context(), p, ann(redrive.Pace{Rate: 4, Canary: -1, Ramp: -1}, func(e redrive.Event) {
			if time.Since(asked) < 2*time.Second {
				return
			}
			asked = time.Now()
			got, err := other.Progress(t.Context(), "orders.dlq", p.ID)
			if err != nil || got.Claim != e.Claim || got.Counts.Sent > e.Counts.Sent {
				t.Errorf("%+v, %v; the run is %+v", got, err, e.Outcome)
			}
			if behind := time.Since(got.Heartbeat); behind > 7*time.Second {
				t.Errorf("it is %v old", behind)
			}
			seen = append(seen, got.Counts.Sent)
		}))
		succeeds(t, 100)(o, err)
		if len(seen) < 10 || seen[2] >= seen[len(seen)-1] || seen[len(seen)-1] != 100 {
			t.Errorf("it went %v", seen)
		}
		k.CreateTopic("bills.dlq", 1) // without a ledger
		if _, err := other.Progress(t.Context(), "bills.dlq", p.ID); !errors.Is(err, redrive.ErrNoRun) {
			t.Errorf("without a ledger: %v", err)
		}
		// The run is over, another one follows, and entries stand behind the last record.
		for i := range int64(5_000) {
			e := dlq.Entry{State: dlq.Expired, Run: "x"}
			k.Produce(e.Record("orders.dlq.ledger", 0, 1_000+i%100))
			if i%1000 == 0 {
				k.Produce(ledgerrecord.Run("orders.dlq.ledger", "other", []byte(`{"v":1,"id":"other","state":"done"}`)))
			}
		}
		got, err := other.Progress(t.Context(), "orders.dlq", p.ID)
		if err != nil || got.State != redrive.Done || got.Counts.Succeeded != 100 || !got.Ended.Equal(o.Ended) {
			t.Errorf("after the end it is %+v, %v", got, err)
		}
		k.Produce(ledgerrecord.Run("orders.dlq.ledger", "other", nil))
		for _, id := range []string{"other", "none", "", p.ID + "/selection/0"} {
			if _, err := other.Progress(t.Context(), "orders.dlq", id); !errors.Is(err, redrive.ErrNoRun) {
				t.Errorf("%q: %v", id, err)
			}
		}
	})
}

// A transaction of the run is open while an operator asks for its progress. The answer waits for
// it, but not for long.
func TestProgress_WaitsASecondForTransactions(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		r, p := interrupted(t, k)
		for _, c := range []struct {
			during, most time.Duration
			done         bool
		}{
			{time.Minute, 1100 * time.Millisecond, false},
			{300 * time.Millisecond, 400 * time.Millisecond, true}, // a marker is late
		} {
			cl := clientOf(t, k, kgo.TransactionalID("its-process"))
			record := ledgerrecord.Run("orders.dlq.ledger", p.ID, []byte(`{"v":1,"id":"`+p.ID+`","state":"done"}`))
			if err := errors.Join(cl.BeginTransaction(), cl.ProduceSync(t.Context(), record).FirstErr()); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() {
				time.Sleep(c.during)
				ended <- cl.EndTransaction(context.Background(), kgo.TransactionEndTry(c.done))
			}()
			began := time.Now()
			o, err := r.Progress(t.Context(), "orders.dlq", p.ID)
			if took := time.Since(began); err != nil || o.State.Finished() != c.done || took > c.most {
				t.Errorf("open for %v: after %v it is %+v, %v; want that it is done: %t", c.during, took, o, err, c.done)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}

// Progress ended where no broker led the ledger for some seconds.
func TestProgress_WaitsWhileALeaderMoves(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		r, p := interrupted(t, k)
		for name, asks := range map[string]struct {
			timestamp int64
			isolation int8
		}{"the start": {-2, 0}, "the end": {-1, 0}, "the last committed": {-1, 1}} {
			fault := k.Cluster.Fault(kfake.Fault{
				Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: "orders.dlq.ledger", Err: kerr.LeaderNotAvailable, Count: -1,
				When: func(req kmsg.Request) bool {
					return listing(req, asks.timestamp, "orders.dlq.ledger") && req.(*kmsg.ListOffsetsRequest).IsolationLevel == asks.isolation
				},
			})
			time.AfterFunc(3*time.Second, fault.Remove)
			if o, err := r.Progress(t.Context(), "orders.dlq", p.ID); err != nil || o.ID != p.ID || fault.Hits() < 2 {
				t.Errorf("%s: it is %+v, %v, after %d questions", name, o, err, fault.Hits())
			}
			fault.Remove()
		}
	})
}

// receivedBytes counts the bytes that a client reads.
type receivedBytes struct{ n atomic.Int64 }

func (r *receivedBytes) OnBrokerRead(_ kgo.BrokerMetadata, _ int16, n int, _, _ time.Duration, _ error) {
	r.n.Add(int64(n))
}

var _ kgo.HookBrokerRead = (*receivedBytes)(nil)

// A run goes on in a ledger of a million entries: how long an answer takes, and what it reads.
func BenchmarkProgress(b *testing.B) {
	const entries, partitions = 1_000_000, 4
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, "orders", "orders.dlq", "orders.dlq.ledger"))
	if err != nil {
		b.Fatal(err)
	}
	defer cluster.Close()
	opts := []kgo.Opt{kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.Dialer((&net.Dialer{}).DialContext)}
	cl, err := kgo.NewClient(append(opts, kgo.MaxBufferedRecords(entries))...)
	if err != nil {
		b.Fatal(err)
	}
	defer cl.Close()
	at := time.Now()
	for i := range int64(entries) {
		if i%100_000 == 0 || i == entries-1_000 {
			run := fmt.Appendf(nil, `{"v":1,"id":"r","state":"sending","by":"ann","token":"t","startedAt":"2026-11-21T03:00:00Z","at":"2026-11-21T03:00:00Z","pace":{},"counts":{"selected":2000000,"sent":%d}}`, i)
			cl.Produce(b.Context(), ledgerrecord.Run("orders.dlq.ledger", "r", run), nil)
		}
		e := dlq.Entry{State: dlq.Succeeded, Run: "r", At: at, By: "ann", Why: "JIRA-1"}
		cl.Produce(b.Context(), e.Record("orders.dlq.ledger", int32(i%partitions), i/partitions), nil)
	}
	if err := cl.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	var read receivedBytes
	r, err := redrive.New(redrive.Config{Kafka: append(opts, kgo.WithHooks(&read))})
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		ask  func() (redrive.Outcome, error)
	}{
		{"progress", func() (redrive.Outcome, error) { return r.Progress(b.Context(), "orders.dlq", "r") }},
		{"runs", func() (redrive.Outcome, error) {
			all, err := r.Runs(b.Context(), "orders.dlq")
			if err != nil {
				return redrive.Outcome{}, err
			}
			return all[0], nil
		}},
		{"status", func() (redrive.Outcome, error) {
			o, err := r.Status(b.Context(), "orders.dlq", "r")
			o.Counts.Sent = entries - 1_000 // of letters that its selection lacks
			return o, err
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			read.n.Store(0)
			for b.Loop() {
				if o, err := c.ask(); err != nil || o.Counts.Sent != entries-1_000 {
					b.Fatal(o.Counts, err)
				}
			}
			b.ReportMetric(float64(read.n.Load())/float64(b.N), "read-B/op")
		})
	}
}
