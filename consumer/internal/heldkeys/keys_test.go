package heldkeys

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sidingkafka/siding/consumer/internal/offsets"
)

// Random processes run a partition, one after the other: they read, run, fail, write letters,
// commit, hand over and die. Each record ends. The first outcomes of a key's records come in their
// order, and so do the last ones. None runs before the time that this process or a commit gave it.
func TestKeys_KeepTheOrderOfAKey(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := newPartition(t)
		for range rapid.IntRange(0, 150).Draw(t, "steps") {
			p.step(t)
		}
		p.settle(t)
	})
}

// A key is held from its head's failure until that is finished. Its next head is another one.
func TestKeys_AreHeldFromFailureToEnd(t *testing.T) {
	t.Parallel()
	k := New[string](10)
	at := time.Unix(1000, 1)
	k.Hold(7, "a", 3, Wait{1, at.Add(-time.Hour), at}, 2)
	k.Hold(8, "b", 4, Wait{Attempts: 1, Due: at.Add(-time.Second)}, 0)
	if due, ok := k.Next(); !k.Has(7) || k.Has(9) || k.Head(7) != "a" || k.Head(9) != "" || !ok || !due.Equal(at.Add(-time.Second)) || k.Held() != 4 {
		t.Errorf("next %v, %v; %d records are held", due, ok, k.Held())
	}
	if !k.Follow(7) || k.Follow(9) || k.Held() != 5 || k.Len() != 2 {
		t.Errorf("%d records of %d keys are held, want 5 of 2", k.Held(), k.Len())
	}
	if early := k.Due(at.Add(-2 * time.Second)); early != nil {
		t.Errorf("%v are due early", early)
	}
	if due := k.Due(at); !slices.Equal(due, []string{"b", "a"}) || k.Due(at) != nil {
		t.Errorf("%v are due, want b and a, once", due)
	}
	if _, ok := k.Next(); ok {
		t.Error("a head waits, though all are due")
	}
	said := k.Commit(func(offset int64) bool { return offset == 4 })
	if want := []offsets.Head{{Offset: 3, Attempts: 1, Due: 1001, Failed: -2600}}; !slices.Equal(said, want) || !k.Unsaid() {
		t.Errorf("a commit says %v, want %v: a whole second, and none that is finished", said, want)
	}
	k.Accepted(k.Changes())
	k.Hold(7, "a", 3, Wait{Attempts: 2, Due: at}, 1)
	if !k.Unsaid() || k.Held() != 3 {
		t.Errorf("after another failure %d records are held, want 3", k.Held())
	}
	if !k.End(7) || k.End(7) || k.Has(7) || k.Held() != 1 {
		t.Errorf("after its end a key is held, or %d records are", k.Held())
	}
}

func TestKeys_AreFullAtTheirBounds(t *testing.T) {
	t.Parallel()
	k := New[int](1000)
	for i := range MostHeads - 1 {
		k.Hold(Key(i), i, int64(i), Wait{Attempts: 1, Due: time.Unix(1, 0)}, 0)
	}
	if k.Full() != "" || k.Eases() {
		t.Errorf("with %d heads: full is %q, eases is %v", k.Len(), k.Full(), k.Eases())
	}
	k.Hold(MostHeads, 0, MostHeads, Wait{Attempts: 1, Due: time.Unix(1, 0)}, 0)
	if k.Full() == "" {
		t.Errorf("with %d heads it is not full", k.Len())
	}
	for i := range MostHeads/8 + 1 {
		k.End(Key(i))
	}
	if k.Full() != "" || !k.Eases() {
		t.Errorf("with %d heads: full is %q, eases is %v", k.Len(), k.Full(), k.Eases())
	}
	for k.Held() < 999 {
		k.Follow(MostHeads)
	}
	if k.Full() != "" || k.Eases() {
		t.Errorf("with %d records: full is %q, eases is %v", k.Held(), k.Full(), k.Eases())
	}
	if k.Follow(MostHeads); k.Full() == "" {
		t.Errorf("with %d records it is not full", k.Held())
	}
	k.End(MostHeads)
	if !k.SetCrowded(true) || k.SetCrowded(true) || k.Full() == "" || k.Eases() {
		t.Error("without room in a commit it is not full")
	}
	for i := range MostHeads {
		k.End(Key(i))
	}
	if k.Full() != "" {
		t.Errorf("without a head: full is %q", k.Full())
	}
}

// What an earlier owner said of heads holds for records that it can have read, and no clock that
// was wrong holds a key longer than the configuration allows.
func TestKeys_TakeHeadsOfAnEarlierOwner(t *testing.T) {
	t.Parallel()
	left := []offsets.Head{{Offset: 3, Attempts: 2, Due: 100, Failed: 40}, {Offset: 5, Attempts: 1, Due: 9_000_000_000, Failed: 900}, {Offset: 9, Attempts: 1, Due: 100}}
	k := New[int](10)
	k.Restore(left, -1, time.Unix(1000, 0))
	if k.Left() {
		t.Error("heads of an unknown epoch are known")
	}
	k.Restore(left, 4, time.Unix(1000, 0))
	if _, ok := k.Take(4); ok {
		t.Error("a record that was none is a head")
	}
	if w, ok := k.Take(5); !ok || w != (Wait{1, time.Unix(900, 0), time.Unix(1000, 0)}) {
		t.Errorf("got %+v, %v; want one attempt, and due at the latest time", w, ok)
	}
	k.Read(2, 4)
	k.Read(7, 5)
	if said := k.Commit(func(int64) bool { return false }); !slices.Equal(said, left[:1]) {
		t.Errorf("the next commit says %v, want what was not reached, and may be the same record", said)
	}
	if said := k.Commit(func(int64) bool { return true }); len(said) > 0 || k.Left() {
		t.Errorf("the next commit says %v of what is finished", said)
	}
}
