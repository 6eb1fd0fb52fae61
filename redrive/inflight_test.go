package redrive

import (
	"testing"

	"github.com/sidingkafka/siding/headers"
)

// The watch reads uncommitted, so it sees copies that do not count.
func TestOnlyTheCopyThatTheLedgerNamesSaysWhoseALetterIs(t *testing.T) {
	t.Parallel()
	const tier = "orders.retry.5s"
	letter := place{0, 2}
	copyAt := func(offset int64, hops int) observedCopy {
		return observedCopy{letter: letter, at: headers.Position{Topic: tier, Offset: offset}, group: "billing", hops: hops}
	}
	for name, c := range map[string]struct {
		entry int64 // where the ledger says that the copy is; negative: it does not say
		seen  []observedCopy
		want  int64 // where the letter waits for its group
		group string
	}{
		"the copy itself":                  {entry: 7, seen: []observedCopy{copyAt(7, 1)}, want: 7, group: "billing"},
		"one of an aborted transaction":    {entry: 7, seen: []observedCopy{copyAt(5, 1)}, want: 7},
		"both":                             {entry: 7, seen: []observedCopy{copyAt(5, 1), copyAt(7, 1)}, want: 7, group: "billing"},
		"both, the other one later":        {entry: 7, seen: []observedCopy{copyAt(7, 1), copyAt(9, 1)}, want: 7, group: "billing"},
		"it moved on":                      {entry: 7, seen: []observedCopy{copyAt(7, 1), copyAt(9, 2)}, want: 9, group: "billing"},
		"it moved on, which is seen first": {entry: 7, seen: []observedCopy{copyAt(9, 2), copyAt(7, 1)}, want: 9, group: "billing"},
		"the entry does not say":           {entry: -1, seen: []observedCopy{copyAt(5, 1), copyAt(7, 1)}, want: 7, group: "billing"},
	} {
		sent := sentLetter{at: letter}
		if c.entry >= 0 {
			sent.queueKey, sent.offset = queueKey{"", tier, 0}, c.entry
		}
		f := newInFlight(Counts{Sent: 1}, []sentLetter{sent})
		for _, s := range c.seen {
			f.onCopy(s)
		}
		asked, whose := int64(-1), ""
		done := f.resolve(func(group string, at headers.Position) progress {
			if at.Offset < c.want {
				return progressPast
			}
			asked, whose = at.Offset, group
			return progressBehind
		})
		if len(done) != 0 || asked != c.want || whose != c.group {
			t.Errorf("%s: it waits for %q at %d, want %q at %d; settled are %v", name, whose, asked, c.group, c.want, done)
		}
	}
}

// A run of millions that is resumed sees the copies of all that are settled.
func TestACopyOfASettledLetterTakesNoRoom(t *testing.T) {
	t.Parallel()
	f := newInFlight(Counts{}, nil)
	f.onCopy(observedCopy{letter: place{0, 2}, at: headers.Position{Topic: "orders.retry.5s", Offset: 5}, group: "billing", hops: 1})
	if n := len(f.seen); n != 0 {
		t.Errorf("%d are kept", n)
	}
}
