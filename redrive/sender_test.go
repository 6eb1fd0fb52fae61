package redrive

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/internal/letters"
)

// A transaction that the alarm stops may contain outcomes, which no poll would find again.
func TestSender_KeepsTheNotesOfAStoppedTransaction(t *testing.T) {
	t.Parallel()
	s := &sender{run: &ownedRun{topics: &topics{dlq: "orders.dlq", ledger: "orders.dlq.ledger"}, rec: &record{ID: "r"}}}
	note := s.run.entry(letters.At(3, 1), dlq.Entry{State: dlq.Succeeded})
	want := dlq.ParseLedgerRecord(note)
	if want.Err != nil {
		t.Fatal(want.Err)
	}
	note.Offset, note.ProducerID, note.Timestamp = 17, 5, time.Now() // as a client leaves them
	if _, err := s.ended(&transaction{notes: []*kgo.Record{note}}); err != nil {
		t.Fatal(err)
	}
	if len(s.notes) != 1 {
		t.Fatalf("%d notes are left, want 1", len(s.notes))
	}
	n := s.notes[0]
	if got := dlq.ParseLedgerRecord(n); got.Err != nil || got.Letter != want.Letter || got.Entry.State != want.Entry.State || n.Topic != "orders.dlq.ledger" || n.Partition != 3 || n.Offset != 0 || n.ProducerID != 0 {
		t.Errorf("what is left is %+v", n)
	}
}
