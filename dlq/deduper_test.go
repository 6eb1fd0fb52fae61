package dlq

import (
	"maps"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
)

// failing returns the Meta of a record that fails now.
func failing(offset int64, changes ...func(*headers.Meta)) headers.Meta {
	m := from(offset)
	m.FirstFailedAt, m.FailedAt = time.Now(), time.Now()
	for _, change := range changes {
		change(&m)
	}
	return m
}

// wantPruned deletes what can be deleted, and checks the first offset of one.dlq that stayed.
func (k *kafka) wantPruned(t *testing.T, want int64) {
	t.Helper()
	l := k.ledger("one.dlq")
	prune(t, l, prunable(t, l, time.Time{}))
	if got := k.PartitionInfo("one.dlq", 0).LogStartOffset; got != want {
		t.Errorf("prune deleted what is before %d, want %d", got, want)
	}
}

// Trap 29: a group is rewound, and the new dead letters are taken for copies of old ones.
//
// Records that had been redriven and had succeeded failed again. Summary showed no open letter,
// plan found none, and prune deleted them without a question.
func TestLineage_AFailureAfterItsLettersOutcomeIsOpen(t *testing.T) {
	t.Parallel()
	for _, state := range states {
		runOnKafka(t, string(state), func(t *testing.T, k *kafka) {
			k.write(t, "one.dlq", &kgo.Record{}, failing(7))
			time.Sleep(time.Minute)
			k.record(t, "one.dlq", 0, 0, Entry{State: state})
			time.Sleep(time.Minute)
			k.write(t, "one.dlq", &kgo.Record{}, failing(7))
			k.write(t, "one.dlq", &kgo.Record{}, failing(7)) // and a copy of that one
			want, stays := []string{"0:1"}, int64(1)
			if !state.Resolves() { // then it is still one letter
				want, stays = []string{"0:0"}, 0
			}
			if state == Redriven {
				stays = 0 // it has no outcome
			}
			l := k.ledger("one.dlq")
			check(t, k.open(t, l, Filter{}, Cursor{}), nil, want...)
			s, err := l.Summarize(t.Context(), Filter{}, Cursor{}, nil)
			if err != nil || s.Open != 1 || s.Open+s.Pending+s.Duplicates+s.Resolved != 3 {
				t.Errorf("summary %+v, %v", s, err)
			}
			k.wantPruned(t, stays)
		})
	}
}

// Prune must not treat a copy without an entry as resolved.
func TestLineage_PruneSparesACopyWithoutAnEntry(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.write(t, "one.dlq", &kgo.Record{}, failing(7))
		time.Sleep(time.Minute)
		k.write(t, "one.dlq", &kgo.Record{}, failing(7))
		k.write(t, "one.dlq", &kgo.Record{}, failing(8))
		time.Sleep(time.Minute)
		k.record(t, "one.dlq", 0, 0, Entry{State: Succeeded})
		k.record(t, "one.dlq", 0, 2, Entry{State: Succeeded})
		check(t, k.open(t, k.ledger("one.dlq"), Filter{}, Cursor{}), nil)
		k.wantPruned(t, 1) // no entry is about the copy
		l := k.ledger("one.dlq")
		check(t, k.open(t, l, Filter{}, Cursor{}), nil)
		if got := l.State(0, 1); got != Duplicate {
			t.Errorf("of the copy the ledger says %q", got)
		}
		k.wantPruned(t, 3) // one does now
	})
}

// An entry is ignored if its target cannot be the letter of that copy.
func TestLineage_AnImpossibleLetterLeavesItsCopyOpen(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "orders.dlq", 1, 7)
		for offset, of := range []headers.Position{
			{},
			{Topic: "orders.dlq", Partition: 1},
			{Topic: "orders.dlq", Partition: 1, Offset: 2},
			{Topic: "orders.dlq", Partition: 1, Offset: 9},
			{Topic: "orders.dlq", Partition: 0},
			{Topic: "one.dlq", Partition: 1},
		} {
			k.record(t, "orders.dlq", 1, int64(offset)+1, Entry{State: Duplicate, Target: of})
		}
		k.record(t, "orders.dlq", 1, 0, Entry{State: Succeeded})
		l := k.ledger("orders.dlq")
		check(t, k.open(t, l, Filter{}, Cursor{}), nil, "1:3", "1:4", "1:5", "1:6")
	})
}

// The state of one letter depends on the entries about all letters before it.
func TestLineage_FindAgreesWithLetters(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		for _, then := range []State{Succeeded, "", Discarded} {
			k.write(t, "one.dlq", &kgo.Record{}, failing(7))
			k.write(t, "one.dlq", &kgo.Record{}, failing(7))
			time.Sleep(time.Minute)
			if then != "" {
				k.record(t, "one.dlq", 0, k.PartitionInfo("one.dlq", 0).HighWatermark-2, Entry{State: then})
			}
			time.Sleep(time.Minute)
		}
		listed, found := map[int64]State{}, map[int64]State{}
		l := k.ledger("one.dlq")
		for _, letter := range collect(t, l.Letters(t.Context(), Filter{}, Cursor{}, WithResolved)) {
			listed[letter.Record.Offset] = letter.State
			one, _, err := l.Find(t.Context(), 0, letter.Record.Offset)
			if err != nil {
				t.Fatal(err)
			}
			found[letter.Record.Offset] = one.State
		}
		if want := (map[int64]State{0: Succeeded, 1: Duplicate, 2: "", 3: Duplicate, 4: Discarded, 5: Duplicate}); !maps.Equal(listed, want) || !maps.Equal(found, want) {
			t.Errorf("listed %v, found %v, want %v", listed, found, want)
		}
	})
}

// The letter of an imported copy may be farther away than Find reads by default.
func TestLineage_FindFollowsTheEntrysTarget(t *testing.T) {
	cases.Skip(t)
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "orders.dlq", 0, lookBack+3)
		k.record(t, "orders.dlq", 0, lookBack+1, Entry{State: Duplicate, Target: headers.Position{Topic: "orders.dlq"}})
		for _, c := range []struct{ letter, want State }{{"", ""}, {Succeeded, Duplicate}, {Unknown, Unknown}, {Expired, ""}} {
			k.record(t, "orders.dlq", 0, 0, Entry{State: c.letter})
			k.wantFound(t, "orders.dlq", 0, lookBack+1, c.want)
		}
	})
}

// A record has several resolved letters. The entry about a copy names the letter whose resolution
// makes it a copy. Here that is the first letter, which a run redrove once more after the copy had
// failed; the second letter was resolved before the copy failed.
func TestLineage_EntryNamesTheLetterThatMadeItACopy(t *testing.T) {
	onKafka(t, func(t *testing.T, k *kafka) {
		write := func() {
			k.write(t, "one.dlq", &kgo.Record{}, failing(7))
			time.Sleep(time.Minute)
		}
		note := func(offset int64, e Entry) {
			k.record(t, "one.dlq", 0, offset, e)
			time.Sleep(time.Minute)
		}
		write()
		note(0, Entry{State: Redriven, Run: "r1"})
		write()
		note(1, Entry{State: Discarded})
		note(0, Entry{State: Unknown, Run: "r1"})
		write()
		note(0, Entry{State: Redriven, Run: "r2"})
		k.wantPruned(t, 0)
		k.wantFound(t, "one.dlq", 0, 2, Duplicate)
		note(0, Entry{State: Unknown, Run: "r2"})
		k.deleteTo(t, "one.dlq", 0, 1)
		check(t, k.open(t, k.ledger("one.dlq"), Filter{}, Cursor{}), nil, "0:2")
		k.wantPruned(t, 2) // the copy stays
	})
}

// Find recognizes the copies of letters that are far away. Otherwise it would take a letter that
// failed later for a copy of them.
func TestLineage_FindKnowsItsNeighborsLetters(t *testing.T) {
	cases.Skip(t)
	onKafka(t, func(t *testing.T, k *kafka) {
		m := failing(7)
		k.write(t, "one.dlq", &kgo.Record{}, m)
		k.fill(t, "one.dlq", 0, lookBack+3)
		k.write(t, "one.dlq", &kgo.Record{}, m)
		time.Sleep(time.Minute)
		if _, err := k.ledger("one.dlq").Discard(t.Context(), Filter{}, Cursor{}, DiscardOptions{By: "ada", Why: "test"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		k.write(t, "one.dlq", &kgo.Record{}, failing(7))
		k.wantFound(t, "one.dlq", 0, lookBack+5, "")
	})
}
