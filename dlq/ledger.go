package dlq

import (
	"cmp"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Ledger is what became of the letters of a dead-letter topic, as the records of its ledger topic
// say. The last entry about a letter counts. A letter without an entry is open, and so is one whose
// entry is broken. Entries about a deleted dead-letter topic of the same name are ignored. A
// consumer's report that it discarded a letter counts only if the letter's last entry says that the
// same run redrove it: see [Entry.DiscardReport].
//
// A Ledger takes at most two bytes of memory for a letter with an entry, and two more for one that
// is [Redriven] or that a consumer reports about. It takes bits where such letters are dense, and
// more than two bytes where only a few in many thousands have an entry.
//
// [Ledger.Read] changes it, and must not run concurrently with any other method. After it, all
// other methods are safe for concurrent use.
type Ledger struct {
	topic, name string
	opts        []kgo.Opt

	id, ledgerID kadm.TopicID
	begun, whole bool // a Read found the topic; the last one came to the end
	missing      bool
	at           Cursor

	states map[int32]*stateSets
	runs   map[string][]byte
	broken map[place]*EntryError // some of them

	reports discardReports
}

// NewLedger returns the ledger of a dead-letter topic, with nothing read yet:
// [github.com/sidingkafka/siding/retrytopics.Naming] knows the name of its topic.
// The options say how to reach the cluster, and may tune fetching; each method
// that reads or writes has clients of its own for as long as it runs.
func NewLedger(topic, ledger string, opts ...kgo.Opt) *Ledger {
	l := &Ledger{topic: topic, name: ledger, opts: opts}
	l.forget()
	return l
}

// forget makes it one of which nothing was read.
func (l *Ledger) forget() {
	l.at, l.states, l.runs, l.broken = Cursor{}, map[int32]*stateSets{}, map[string][]byte{}, map[place]*EntryError{}
	l.reports, l.whole = discardReports{byRun{}, byRun{}}, false
}

// Topic is the name of the dead-letter topic, and Name that of the ledger's.
func (l *Ledger) Topic() string { return l.topic }

// Name is the name of the ledger's topic.
func (l *Ledger) Name() string { return l.name }

// TopicID is the id of the dead-letter topic, for new entries. It is zero before
// the first Read, and where brokers have no ids.
func (l *Ledger) TopicID() [16]byte { return l.id }

// Missing reports whether the last Read found no ledger topic, as beside a
// dead-letter topic that siding did not make: then every letter is open, and
// nothing can be recorded before the topic is created.
func (l *Ledger) Missing() bool { return l.missing }

// State is what became of a letter; empty if nothing did, or is known. A [Duplicate] of
// which the entry names the letter is one only while that letter is settled by
// something that was done about its record; else it is [Unknown] if the letter is,
// or empty, and the methods that read letters judge it like one without an entry.
func (l *Ledger) State(partition int32, offset int64) State { return l.states[partition].state(offset) }

// pending reports whether a letter was redriven and has no outcome, or its entry names such a
// letter as the one that it is a copy of.
func (l *Ledger) pending(partition int32, offset int64) bool {
	f := l.states[partition]
	return f.reportedAt(f.letterOf(offset)) == Redriven
}

// since is the Unix second at which a letter was settled that is, and whose state resolves its
// record.
func (l *Ledger) since(partition int32, offset int64) uint32 {
	return l.states[partition].since.Of(offset)
}

// Count is how many letters are in a state, with those that have expired since.
func (l *Ledger) Count(s State) (n int64) {
	fate := stateCode(s)
	if fate < stateOf {
		return 0
	}
	for _, f := range l.states {
		if s != Duplicate {
			n += int64(f.sets[fate].Len())
			continue
		}
		for offset := range f.sets[fate].All() {
			if f.state(offset) == s {
				n++
			}
		}
	}
	return n
}

// Pending is how many letters a run has brought back of which the ledger says no more
// than that: they are [Redriven], and have no outcome.
func (l *Ledger) Pending(run string) (n int64) {
	for partition, brought := range l.reports.redriven[run] {
		for offset := range brought.All() {
			if l.State(partition, offset) == Redriven {
				n++
			}
		}
	}
	return n
}

// Broken is how many letters have a last entry that can't be read, and the first
// of what those are, 100 at most, by partition and offset; after them there are
// records whose key says nothing.
func (l *Ledger) Broken() (letters int64, some []*EntryError) {
	for _, f := range l.states {
		letters += int64(f.sets[stateBroken].Len() + f.sets[stateNewer].Len())
	}
	letterFirst := func(a, b place) int {
		return cmp.Or(last(a.offset < 0, b.offset < 0), cmp.Compare(a.partition, b.partition), cmp.Compare(a.offset, b.offset))
	}
	for _, at := range slices.SortedFunc(maps.Keys(l.broken), letterFirst) {
		some = append(some, l.broken[at])
	}
	return letters, some
}

// Unreadable reports whether the last entry about a letter can't be read: its
// letter counts as open, and whether it was redriven is not known. A
// [Duplicate] goes by its letter.
func (l *Ledger) Unreadable(partition int32, offset int64) bool {
	f := l.states[partition]
	if f == nil {
		return false
	}
	offset = f.letterOf(offset)
	return f.sets[stateBroken].Has(offset) || f.sets[stateNewer].Has(offset)
}

// Runs are the redrive runs of the topic: the last value under the key of each
// run's id. They are the ledger's, not to be written into.
func (l *Ledger) Runs() map[string][]byte { return maps.Clone(l.runs) }

// At is where the reading stands, in the ledger's topic.
func (l *Ledger) At() Cursor { return Cursor{Topic: l.name, At: maps.Clone(l.at.At)} }
