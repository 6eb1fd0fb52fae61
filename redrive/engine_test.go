package redrive

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/internal/inflight"
	"github.com/sidingkafka/siding/redrive/internal/letters"
)

// A transaction that the alarm stops may have outcomes in it, which nobody would find again.
func TestSender_KeepsTheNotesOfAStoppedTransaction(t *testing.T) {
	t.Parallel()
	s := &sender{run: &ownedRun{topics: &topics{dlq: "orders.dlq", ledger: "orders.dlq.ledger"}, rec: &record{ID: "r"}}}
	note := s.run.entry(letters.At(3, 1), dlq.Entry{State: dlq.Succeeded})
	want := dlq.ParseLedgerRecord(note)
	if want.Err != nil {
		t.Fatal(want.Err)
	}
	note.Offset, note.ProducerID, note.Timestamp = 17, 5, time.Now() // as a client leaves them
	if _, err := s.ended(ended{transaction: &transaction{notes: []*kgo.Record{note}}}); err != nil {
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

// With many outcomes they go in two transactions, and the process may end between them.
func TestRecord_LastRecordsEndTheRunBeforeItsSelection(t *testing.T) {
	t.Parallel()
	rec := &record{V: runVersion, ID: "r", State: Done, Pieces: 3}
	var got []string
	for _, n := range rec.last("orders.dlq.ledger") {
		got = append(got, fmt.Sprintf("%s %t", n.Key, n.Value != nil))
	}
	if got, want := strings.Join(got, ", "), "run/r true, run/r/selection/0 false, run/r/selection/1 false, run/r/selection/2 false"; got != want {
		t.Errorf("the last records are %s, want %s", got, want)
	}
}

// The answer to the last commit was lost: the run takes itself back, and is over. Another record of it would have no selection.
func TestRunEngine_WritesNothingAfterTheFinalRecord(t *testing.T) {
	t.Parallel()
	doomed := &FailedAgainError{Cause: "tax"}
	for _, h := range []*ownedRun{{rec: &record{State: Done}}, {rec: &record{State: Aborted}, abortErr: doomed}} {
		err := runEngine(t.Context(), h, nil) // without writers
		if again, _ := errors.AsType[*FailedAgainError](err); again != h.abortErr || (err != nil) != (h.abortErr != nil) {
			t.Errorf("a run that is %s ended with %v", h.rec.State, err)
		}
	}
}

// A broker that says something else each time is no reason to keep it all.
func TestThrottle_ForgetsMessages(t *testing.T) {
	t.Parallel()
	told := map[string]int{}
	e := &engine{
		ownedRun: &ownedRun{topics: &topics{dlq: "orders.dlq"}, rec: &record{ID: "r"}}, flights: inflight.New(inflight.Counts{}, nil),
		sender: &sender{bucket: newBucket(1, 1, time.Now())}, on: func(e Event) { told[e.Message]++ },
	}
	for i := range 3 * maxLogged {
		e.logThrottled(fmt.Sprint(i))
		e.logThrottled(fmt.Sprint(i))
	}
	if len(e.throttle.logged) > maxLogged {
		t.Errorf("%d messages are kept", len(e.throttle.logged))
	}
	if len(told) != 3*maxLogged || told["7"] != 1 {
		t.Errorf("%d messages were told, want %d; one of them %d times", len(told), 3*maxLogged, told["7"])
	}
}

// The flights let go of a letter when a look finds its outcome, which is before the loop hears of it: a run that ended in between left
// the letter without an outcome for ever.
func TestEngine_IsNotOverWhileAPollIsUnderWay(t *testing.T) {
	t.Parallel()
	now := time.Now()
	e := &engine{
		ownedRun: &ownedRun{topics: &topics{dlq: "orders.dlq", ledger: "orders.dlq.ledger"}, rec: &record{ID: "r", Pace: Pace{Window: time.Second}}},
		flights:  inflight.New(inflight.Counts{}, nil), state: Watching, lastSent: now.Add(-time.Minute), heartbeat: now, reported: now,
		sender: &sender{}, poller: &poller{asOf: now, began: now, ended: now, cancel: func() {}},
	}
	if over, err := e.advance(t.Context(), t.Context(), now); over || err != nil {
		t.Errorf("it is over: %v, %v", over, err)
	}
}
