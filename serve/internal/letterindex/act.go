package letterindex

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
)

// Act is what a person did to letters without a run, by one command: they discarded or reopened
// them, or the like.
type Act struct {
	// State is what the letters became.
	State dlq.State
	// By is who did it, and Why the reason given.
	By, Why string
	// First and Last are the times of the first and the last entry.
	First, Last time.Time
	// Letters counts the entries.
	Letters int64
}

// mostActs bounds the acts of an index; beyond it the oldest are forgotten.
const mostActs = 500

// actGap is the longest time between two entries of one act.
const actGap = time.Minute

// acts are those of one ledger.
type acts struct{ all []Act }

// add takes an entry of the ledger over, if a person wrote it. Entries come in the order of their
// partitions.
func (a *acts) add(n *dlq.LedgerRecord) {
	e := &n.Entry
	if n.Err != nil || e.By == "" || e.Run != "" || n.Run != "" {
		return
	}
	at := e.At
	if at.IsZero() {
		at = n.Record.Timestamp
	}
	by, why := cut(e.By, 256), cut(e.Why, 1024)
	for i := len(a.all) - 1; i >= 0; i-- {
		same := &a.all[i]
		if same.State == e.State && same.By == by && same.Why == why && !at.Before(same.First.Add(-actGap)) && !at.After(same.Last.Add(actGap)) {
			same.Letters++
			if at.Before(same.First) {
				same.First = at
			}
			if at.After(same.Last) {
				same.Last = at
			}
			return
		}
	}
	if len(a.all) == mostActs {
		oldest := 0
		for i := range a.all {
			if a.all[i].Last.Before(a.all[oldest].Last) {
				oldest = i
			}
		}
		a.all = slices.Delete(a.all, oldest, oldest+1)
	}
	a.all = append(a.all, Act{State: e.State, By: by, Why: why, First: at, Last: at, Letters: 1})
}

// touch adds the letter that a record of the ledger is about, if the index has it. It keeps what
// people did.
func (b *Index) touch(touched []place, n *dlq.LedgerRecord) []place {
	if name, ok := strings.CutPrefix(n.Run, notesPrefix); ok {
		b.mu.Lock()
		if b.notes[name] = bytes.Clone(n.Record.Value); n.Record.Value == nil {
			delete(b.notes, name)
		}
		b.mu.Unlock()
		return touched
	}
	if n.Run != "" {
		b.runsChanged = b.runsChanged || !strings.Contains(n.Run, "/")
		b.mu.Lock()
		if addPrune(b.prunes, n) {
			b.changes++
		}
		b.mu.Unlock()
	}
	_, _, isReport := ledgerrecord.DiscardReportOf(n.Run)
	if n.Letter < 0 || n.Run != "" && !isReport || n.Note != nil {
		return touched
	}
	b.mu.Lock()
	b.acts.add(n)
	b.mu.Unlock()
	if p := b.partitions[n.Record.Partition]; p == nil || n.Letter >= p.next {
		return touched // it is read with its state
	}
	return append(touched, place{n.Record.Partition, n.Letter})
}

// Acts returns what people did to letters without a run, the latest first: the last 500 acts. The
// ledger keeps the last entry about a letter, so an act loses the letters about which a person
// decided again.
func (b *Index) Acts() []Act {
	b.mu.RLock()
	all := slices.Clone(b.acts.all)
	b.mu.RUnlock()
	slices.SortFunc(all, func(a, b Act) int { return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.By, b.By)) })
	return all
}
