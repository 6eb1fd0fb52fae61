package suite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/internal/commitmark"
)

// log: offsets without records, by transactions or retention.
var log = map[string]func(*testing.T, *fixture){
	// Trap 6: transactions leave offsets without a record, and a tracker that counts offsets waits
	// for them.
	"by partition: markers and aborted records hold back no offset": func(t *testing.T, f *fixture) { gaps(t, f, consumer.OrderPartition) },
	// Trap 6: the same, if records finish one by one.
	"order none: markers and aborted records hold back no offset": func(t *testing.T, f *fixture) { gaps(t, f, consumer.OrderNone) },
	// The committed floor stopped before a marker at the log's end. Lag never reached 0, and when
	// retention deleted the marker, records were reported as lost.
	//
	// A transaction that stays open held up its partition, and health reported that all was well.
	"the floor passes trailing markers and aborted records, and no open ones": trailing,
}

// trailing writes transactions to a source and a tier whose markers come last in the log.
func trailing(t *testing.T, f *fixture) {
	cfg := f.config(ok)
	c := f.Run(cfg)
	cl := f.client(t, kgo.TransactionalID(f.group), kgo.TransactionTimeout(2*time.Minute), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	defer cl.Close()
	batch := func(original int64) []*kgo.Record {
		return []*kgo.Record{
			{Topic: f.topic, Partition: 1, Value: []byte("x")},
			{Topic: f.tierTopic(tier1), Partition: 1, Value: []byte("x"), Headers: f.copyOf(original, 1, time.Now()).Append(nil)},
		}
	}
	ends := func(topic string) (end int64) {
		f.admin(t, func(ctx context.Context, admin *kadm.Client) error {
			listed, err := admin.ListEndOffsets(ctx, topic)
			o, _ := listed.Lookup(topic, 1)
			end = o.Offset
			return err
		})
		return end
	}
	for i, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit} {
		records := batch(1000 + int64(i))
		transact(t, f, cl, end, records...)
		for _, r := range records {
			eventually(t, "the floor reaches the end of "+r.Topic, func() bool {
				to := f.committedNow(t, f.group, r.Topic, 1)
				return to > r.Offset+1 && to == ends(r.Topic)
			})
		}
	}
	open := batch(2000)
	id := leaveOpen(t, cl, open)
	f.Handled(f.Produce(&kgo.Record{Topic: f.topic, Partition: 0, Key: f.keyOf(0), Value: []byte("y")})[0], 1)
	awaits(t, c.Health, id, open)
	eventually(t, "the commit says that an open transaction is ahead", func() bool {
		said := saidNow(t, f, f.group, f.topic, 1)
		open := commitmark.ParseLane(said.Metadata, said.At).OpenSince
		return !open.IsZero() && time.Since(open) < time.Hour
	})
	stop(t, c) // commits all finished records
	for _, r := range open {
		if to := f.committedNow(t, f.group, r.Topic, 1); to != r.Offset {
			t.Errorf("%d is committed on %s, where a record of an open transaction stands at %d", to, r.Topic, r.Offset)
		}
	}
	must(t, cl.EndTransaction(t.Context(), kgo.TryCommit))
	f.Run(cfg)
	f.Handled(open[0], 1)
	f.Handled(&kgo.Record{Topic: f.topic, Partition: 1, Offset: 2000}, 1)
}

// gaps consumes a source and a tier that were written in transactions.
func gaps(t *testing.T, f *fixture, order consumer.Order) {
	t.Helper()
	cfg := f.config(func(_ context.Context, r *kgo.Record) error {
		if string(r.Value) == "aborted" {
			t.Errorf("record %d of an aborted transaction is run", r.Offset)
		}
		return nil
	})
	cfg.Order = order
	stop(t, f.Run(cfg)) // the tiers exist now
	cl := f.client(t, kgo.TransactionalID(f.group), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	defer cl.Close()
	source := func(value string) *kgo.Record {
		return &kgo.Record{Topic: f.topic, Partition: 1, Value: []byte(value)}
	}
	parked := func(original int64, value string) *kgo.Record {
		return &kgo.Record{Topic: f.tierTopic(tier1), Partition: 1, Value: []byte(value), Headers: f.copyOf(original, 1, time.Now()).Append(nil)}
	}
	var handled []*kgo.Record
	for i := range int64(6) {
		end, value := kgo.TryCommit, "committed"
		if i%3 == 1 {
			end, value = kgo.TryAbort, "aborted"
		}
		batch := []*kgo.Record{source(value), source(value), parked(1000+i, value)}
		transact(t, f, cl, end, batch...)
		if end == kgo.TryCommit {
			handled = append(handled, batch[0], batch[1], &kgo.Record{Topic: f.topic, Partition: 1, Offset: 1000 + i})
		}
	}
	last := f.Produce(source("last"), parked(2000, "last"))
	// After 12 and 6 records, and a marker of each transaction. The last marker may be missing,
	// since the broker writes it when it wants.
	if last[0].Offset < 17 || last[1].Offset < 11 {
		t.Fatalf("the last records stand at %d and %d: there are no gaps in front of them", last[0].Offset, last[1].Offset)
	}
	f.Run(cfg)
	f.handledOnce(append(handled, last[0], &kgo.Record{Topic: f.topic, Partition: 1, Offset: 2000}))
	f.committed(t, f.topic, 1, last[0].Offset+1)
	f.committed(t, f.tierTopic(tier1), 1, last[1].Offset+1)
	f.Conserved()
}

// transact writes records in a transaction.
func transact(t *testing.T, f *fixture, cl *kgo.Client, end kgo.TransactionEndTry, records ...*kgo.Record) {
	t.Helper()
	ctx, cancel := f.within()
	defer cancel()
	must(t, errors.Join(cl.BeginTransaction(), cl.ProduceSync(ctx, records...).FirstErr(), client.EndTransaction(ctx, cl, end, records...)))
}

// leaveOpen writes records in a transaction that it does not end, and returns the producer's id.
func leaveOpen(t *testing.T, cl *kgo.Client, open []*kgo.Record) int64 {
	t.Helper()
	must(t, cl.BeginTransaction())
	must(t, cl.ProduceSync(t.Context(), open...).FirstErr())
	id, _, err := cl.ProducerID(t.Context())
	must(t, err)
	return id
}

// awaits waits until health says that lane 1 waits for a producer's transaction, in which these
// records were written.
func awaits(t *testing.T, health func() consumer.Health, producer int64, open []*kgo.Record) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		h := health()
		missing := ""
		for _, r := range open {
			want := fmt.Sprintf("open transaction: %s/1 can be read only up to offset %d, where a transaction of producer id %d, epoch ", r.Topic, r.Offset, producer)
			if !strings.Contains(h.Lanes[1].Why, want) {
				missing = want
			}
		}
		if missing == "" && h.OK && h.Lanes[0].State == consumer.StateRunning && h.Lanes[1].State == consumer.StateWaiting {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: health says %q; it is %+v", missing, h)
		}
	}
}
