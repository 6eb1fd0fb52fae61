package redrive

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
)

// A transaction that the alarm stops may have outcomes in it, which nobody would find again.
func TestWhatAStoppedTransactionHadForTheLedgerIsToldAtTheEnd(t *testing.T) {
	t.Parallel()
	e := &engine{held: &held{topics: &topics{dlq: "orders.dlq", ledger: "orders.dlq.ledger"}, rec: &record{ID: "r"}}}
	note := e.entry(place{3, 1}, dlq.Entry{State: dlq.Succeeded})
	letter, want, err := dlq.ParseEntry(note)
	if err != nil {
		t.Fatal(err)
	}
	note.Offset, note.ProducerID, note.Timestamp = 17, 5, time.Now() // as a client leaves them
	if err := e.ended(ended{transaction: &transaction{notes: []*kgo.Record{note}}}); err != nil {
		t.Fatal(err)
	}
	if len(e.notes) != 1 {
		t.Fatalf("%d notes are left, want 1", len(e.notes))
	}
	n := e.notes[0]
	if l, got, err := dlq.ParseEntry(n); err != nil || l != letter || got.State != want.State || n.Topic != "orders.dlq.ledger" || n.Partition != 3 || n.Offset != 0 || n.ProducerID != 0 {
		t.Errorf("what is left is %+v, %v", n, err)
	}
}
