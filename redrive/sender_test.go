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
	if len(s.records) != 1 {
		t.Fatalf("%d notes are left, want 1", len(s.records))
	}
	n := s.records[0]
	if got := dlq.ParseLedgerRecord(n); got.Err != nil || got.Letter != want.Letter || got.Entry.State != want.Entry.State || n.Topic != "orders.dlq.ledger" || n.Partition != 3 || n.Offset != 0 || n.ProducerID != 0 {
		t.Errorf("what is left is %+v", n)
	}
}

func TestSender_KeepsTheNotesOfARefusedTransaction(t *testing.T) {
	t.Parallel()
	s := &sender{run: &ownedRun{load: newLoad(1 << 20)}, taken: 3, records: []*kgo.Record{{Value: []byte("later")}}}
	refused := []*outgoing{{Place: letters.At(0, 1)}, {Place: letters.At(0, 2)}}
	if stays := s.refused(&transaction{copies: refused, notes: []*kgo.Record{{Value: []byte("first")}}, refused: refused}); stays != nil {
		t.Errorf("letter %v stays, of two that were refused", stays.at)
	}
	if len(s.records) != 2 || string(s.records[0].Value) != "first" || len(s.buffer) != 2 || s.taken != 1 {
		t.Errorf("it has the notes %v, and %d letters of which %d are taken", s.records, len(s.buffer), s.taken)
	}
}

// The letters of that transaction may come back.
func TestSender_IsNotDoneWhileATransactionEnds(t *testing.T) {
	t.Parallel()
	if (&sender{busy: [2]bool{false, true}}).done() || !(&sender{}).done() {
		t.Error("it is done before its last transaction has ended, or never")
	}
}
