package inflight

import (
	"testing"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/internal/letters"
)

// The watch reads uncommitted, so it sees copies that do not count.
func TestOnCopy_TheCopyThatTheLedgerNamesCounts(t *testing.T) {
	t.Parallel()
	const tier = "orders.retry.5s"
	letter := letters.At(0, 2)
	copyAt := func(offset int64, hops int) ObservedCopy {
		return ObservedCopy{Letter: letter, At: headers.Position{Topic: tier, Offset: offset}, Group: "billing", Hops: hops}
	}
	for name, c := range map[string]struct {
		entry int64 // where the ledger says that the copy is; negative: it does not say
		seen  []ObservedCopy
		want  int64 // where the letter waits for its group
		group string
	}{
		"the copy itself":                  {entry: 7, seen: []ObservedCopy{copyAt(7, 1)}, want: 7, group: "billing"},
		"one of an aborted transaction":    {entry: 7, seen: []ObservedCopy{copyAt(5, 1)}, want: 7},
		"both":                             {entry: 7, seen: []ObservedCopy{copyAt(5, 1), copyAt(7, 1)}, want: 7, group: "billing"},
		"both, the other one later":        {entry: 7, seen: []ObservedCopy{copyAt(7, 1), copyAt(9, 1)}, want: 7, group: "billing"},
		"it moved on":                      {entry: 7, seen: []ObservedCopy{copyAt(7, 1), copyAt(9, 2)}, want: 9, group: "billing"},
		"it moved on, which is seen first": {entry: 7, seen: []ObservedCopy{copyAt(9, 2), copyAt(7, 1)}, want: 9, group: "billing"},
		"the entry does not say":           {entry: -1, seen: []ObservedCopy{copyAt(5, 1), copyAt(7, 1)}, want: 7, group: "billing"},
	} {
		sent := Sent{At: letter}
		if c.entry >= 0 {
			sent.QueueKey, sent.Offset = QueueKey{"", tier, 0}, c.entry
		}
		f := New(Counts{Sent: 1}, []Sent{sent}, nil)
		for _, s := range c.seen {
			f.OnCopy(s)
		}
		asked, whose := int64(-1), ""
		done := f.Resolve(func(group string, at headers.Position) Progress {
			if at.Offset < c.want {
				return Past
			}
			asked, whose = at.Offset, group
			return Behind
		})
		if len(done) != 0 || asked != c.want || whose != c.group {
			t.Errorf("%s: it waits for %q at %d, want %q at %d; resolved are %v", name, whose, asked, c.group, c.want, done)
		}
	}
}

// A run of millions that is resumed sees the copies of all that are resolved.
func TestOnCopy_OfAResolvedLetterTakesNoMemory(t *testing.T) {
	t.Parallel()
	f := New(Counts{}, nil, nil)
	f.OnCopy(ObservedCopy{Letter: letters.At(0, 2), At: headers.Position{Topic: "orders.retry.5s", Offset: 5}, Group: "billing", Hops: 1})
	if n := len(f.seen); n != 0 {
		t.Errorf("%d are kept", n)
	}
}

// A consumer whose clock is behind the run's writes a copy again that is not due yet, without an
// attempt. The letter has moved, but would count as succeeded once the group passed the first copy.
func TestOnCopy_OfTheRunItselfChangesNothing(t *testing.T) {
	t.Parallel()
	const tier = "orders.retry.5s"
	letter := letters.At(0, 2)
	f := New(Counts{}, nil, nil)
	f.Sent([]Sent{{At: letter, QueueKey: QueueKey{"billing", tier, 0}, Offset: 7}}, nil)
	f.OnCopy(ObservedCopy{Letter: letter, At: headers.Position{Topic: tier, Offset: 7}, Group: "billing", Hops: 1})
	if n := len(f.seen); n != 0 {
		t.Errorf("%d letters take memory although their groups have not written anything", n)
	}
	f.OnCopy(ObservedCopy{Letter: letter, At: headers.Position{Topic: tier, Offset: 9}, Group: "billing", Hops: 2})
	done := f.Resolve(func(_ string, at headers.Position) Progress {
		if at.Offset == 7 {
			return Past
		}
		return Behind
	})
	if len(done) != 0 {
		t.Errorf("the letter waits at offset 9, and the outcome is %v", done)
	}
}
