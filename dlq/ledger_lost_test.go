package dlq

import (
	"math"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
)

// The dead-letter topic lost its end in an unclean election, and new letters got the offsets of
// letters that were resolved. The new letters had the states of the old ones, so no list of open
// letters had them.
func TestLedger_ALetterAtALostOffsetHasNoState(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		// old brokers have no ids of topics, so a topic that is recreated looks like one whose log
		// lost its records
		old := kgo.MaxVersions(kversion.V2_7_0())
		k.cl = k.client(t, old)
		ledger := func() *Ledger { return NewLedger("one.dlq", "one.dlq.ledger", k.opts(old)...) }
		k.fill(t, "one.dlq", 0, 4)
		l := ledger()
		if n, err := l.Discard(t.Context(), Filter{}, Cursor{}, DiscardOptions{By: "ada", Why: "test data"}); n != 4 || err != nil {
			t.Fatalf("%d letters are discarded, %v; want 4", n, err)
		}
		sent := Entry{Epochs: 1, State: Redriven, Run: "r"}
		k.record(t, "one.dlq", 0, 3, sent)
		read(t, l)
		wantStates(t, l, 0, Discarded, Discarded, Discarded, Redriven)

		if err := k.DeleteTopic("one.dlq"); err != nil {
			t.Fatal(err)
		}
		k.create(t, "one.dlq", 1)
		k.fill(t, "one.dlq", 0, 1) // the new leader had this one
		read(t, l)
		if err := k.MoveTopicPartition("one.dlq", 0, 0); err != nil { // a new leader epoch
			t.Fatal(err)
		}
		k.fill(t, "one.dlq", 0, 3)
		for name, l := range map[string]*Ledger{"one that knew the lost letters": l, "a new one": ledger()} {
			t.Log(name)
			read(t, l)
			wantStates(t, l, 0, Discarded, "", "", "")
			check(t, k.open(t, l, Filter{}, Cursor{}), nil, "0:1", "0:2", "0:3")
		}
		read(t, l) // or a Read that failed: the cut is not lost by it
		if cut, none := l.TakeCut(0), l.TakeCut(0); cut != 1 || none != math.MaxInt64 {
			t.Errorf("the letters are lost from %d, then from %d; want 1, then none", cut, none)
		}
		for offset, want := range []State{Discarded, "", ""} {
			if letter, _, err := ledger().Find(t.Context(), 0, int64(offset)); err != nil || letter.State != want {
				t.Errorf("letter %d is %+v (%v), want it %q", offset, letter, err, want)
			}
		}

		// what was under way for the lost letters says nothing about the new ones
		k.record(t, "one.dlq", 0, 1, Entry{Epochs: 1, State: Succeeded, Run: "r"})
		sent.State = Discarded
		k.produce(t, discardReport(&sent, "one.dlq.ledger", 0, 3))
		k.record(t, "one.dlq", 0, 2, Entry{Epochs: 2, State: Discarded})
		for _, l := range []*Ledger{l, ledger()} {
			read(t, l)
			wantStates(t, l, 0, Discarded, "", Discarded, "")
		}
		k.record(t, "one.dlq", 0, 3, Entry{State: Unknown}) // of an earlier version
		read(t, l)
		wantStates(t, l, 0, Discarded, "", Discarded, Unknown)
	})
}
