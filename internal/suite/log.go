package suite

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
)

// log: what stands in a log besides records, and what does not any more.
var log = map[string]func(*testing.T, *fixture){
	// Trap 6: transactions leave offsets without a record, and a tracker that counts offsets waits for them.
	"by partition: markers and aborted records hold back no offset": func(t *testing.T, f *fixture) { gaps(t, f, consumer.OrderPartition) },
	// Trap 6: the same, where records finish one by one.
	"order none: markers and aborted records hold back no offset": func(t *testing.T, f *fixture) { gaps(t, f, consumer.OrderNone) },
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
	if err := f.Run(cfg).Stop(); err != nil { // the tiers are there now
		t.Fatal(err)
	}
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
	// Behind 12 and 6 records, and a marker of each transaction but perhaps the last one, which the broker writes in its own time.
	if last[0].Offset < 17 || last[1].Offset < 11 {
		t.Fatalf("the last records stand at %d and %d: there are no gaps in front of them", last[0].Offset, last[1].Offset)
	}
	f.Run(cfg)
	for _, r := range append(handled, last[0], &kgo.Record{Topic: f.topic, Partition: 1, Offset: 2000}) {
		f.Handled(r, 1)
	}
	f.committed(t, f.topic, 1, last[0].Offset+1)
	f.committed(t, f.tierTopic(tier1), 1, last[1].Offset+1)
	f.Conserved()
}

// transact writes records in a transaction.
func transact(t *testing.T, f *fixture, cl *kgo.Client, end kgo.TransactionEndTry, records ...*kgo.Record) {
	t.Helper()
	ctx, cancel := f.within()
	defer cancel()
	err := cl.BeginTransaction()
	if err == nil {
		err = cl.ProduceSync(ctx, records...).FirstErr()
	}
	if err == nil {
		err = cl.EndTransaction(ctx, end)
	}
	if err != nil {
		t.Fatal(err)
	}
}
