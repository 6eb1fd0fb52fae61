package dlq

// The ledger of one topic, one file an operation.

import (
	"cmp"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Ledger has the states of the letters of a dead-letter topic, from the records of its ledger
// topic. The last entry about a letter counts. A letter is open if it has no entry, or a broken
// one. Entries about a deleted dead-letter topic of the same name are ignored, as are those about
// letters that the brokers lost: see [Entry].Epochs. A consumer's report that it discarded a letter
// counts only if the letter's last entry says that the same run redrove it.
//
// A Ledger takes at most two bytes of memory for a letter with an entry, and two more for one that
// is [Redriven] or that a consumer reports about. It takes bits where such letters are dense, and
// more than two bytes where only a few in many thousands have an entry.
//
// [Ledger.Read] changes it, as does [Ledger.Prune], and must not run concurrently with any other
// method. After it, all other methods are safe for concurrent use.
type Ledger struct {
	topic, name string
	opts        []kgo.Opt

	id, ledgerID kadm.TopicID
	begun, whole bool // a Read found the topic; the last Read came to the end
	missing      bool
	reached      map[int32]bool // the partitions of which the last Read came to the end
	at           Cursor
	taken        int64 // counts what changed the states

	lost   lostLetters
	states partitionStates
	runs   map[string][]byte
	broken map[place]*EntryError // some of them

	dialects *Dialects
}

// NewLedger returns the ledger of the dead-letter topic, without reading it. ledger is the name of
// the ledger's topic, see [github.com/sidingkafka/siding/retrytopics.Naming]. opts connect to the
// cluster, and may tune fetching. Each method that reads or writes opens its own clients, and
// closes them before it returns.
func NewLedger(topic, ledger string, opts ...kgo.Opt) *Ledger {
	l := &Ledger{topic: topic, name: ledger, opts: opts, lost: lostLetters{map[int32]int32{}, map[int32]int32{}, map[int32]int64{}}, dialects: builtin}
	l.forget()
	return l
}

// SetOpts replaces the options of [NewLedger] in what follows. It changes the ledger, as
// [Ledger.Read] does.
func (l *Ledger) SetOpts(opts ...kgo.Opt) { l.opts = opts }

// forget drops everything that was read.
func (l *Ledger) forget() {
	l.at, l.states, l.runs, l.broken = Cursor{}, partitionStates{}, map[string][]byte{}, map[place]*EntryError{}
	l.whole = false
}

// Topic returns the name of the dead-letter topic.
func (l *Ledger) Topic() string { return l.topic }

// Name returns the name of the ledger's topic.
func (l *Ledger) Name() string { return l.name }

// TopicID returns the id of the dead-letter topic, for new entries. It is zero before the first
// Read, and if the brokers have no ids.
func (l *Ledger) TopicID() [16]byte { return l.id }

// LedgerID returns the id of the ledger's topic. It changes when that was recreated: the states
// that were known before are forgotten then. It is zero before the first Read, without a ledger,
// and if the brokers have no ids.
func (l *Ledger) LedgerID() [16]byte { return l.ledgerID }

// TakeCut returns the offset of a partition from which letters that were read may be others by now:
// the Reads since the last call found letters lost there, or a leader that began there. It is
// [math.MaxInt64] if there is none. It changes the ledger, as [Ledger.Read] does.
func (l *Ledger) TakeCut(partition int32) int64 { return l.lost.takeCut(partition) }

// Missing reports whether the last Read found no ledger topic, for example because siding did not
// create the dead-letter topic. Then every letter is open, and no entry can be written until the
// ledger's topic is created.
func (l *Ledger) Missing() bool { return l.missing }

// Known reports whether the states of a partition's letters are known: the last Read came to the
// end of that partition of the ledger, though it may have failed on others.
func (l *Ledger) Known(partition int32) bool { return l.whole || l.reached[partition] }

// State returns the state of a letter, by its last entry; empty if there is none that can be read.
// The entry of a [Duplicate] may name the original letter. Then it counts only while that letter
// was redriven or discarded. Otherwise the state is [Unknown] if that letter's is, or else empty,
// and the methods that read letters treat the duplicate like a letter without an entry.
func (l *Ledger) State(partition int32, offset int64) State { return l.states[partition].state(offset) }

// pending reports whether a letter was redriven and has no outcome, or is by its entry the copy of
// such a letter.
func (l *Ledger) pending(partition int32, offset int64) bool {
	f := l.states[partition]
	return f.reportedAt(f.letterOf(offset)) == Redriven
}

// Count returns how many letters have an entry with the state, letters that retention deleted since
// among them. It counts an entry of a [Duplicate] also where [Ledger.State] does not.
func (l *Ledger) Count(s State) (n int64) {
	if code := stateCode(s); code >= stateOf {
		for _, f := range l.states {
			n += int64(f.sets[code].Len())
		}
	}
	return n
}

// Pending returns how many letters of a run are [Redriven] and have no outcome yet.
func (l *Ledger) Pending(run string) (n int64) {
	for _, f := range l.states {
		if f.redriven[run] == nil {
			continue
		}
		for offset := range f.redriven[run].All() {
			if f.state(offset) == Redriven {
				n++
			}
		}
	}
	return n
}

// Broken returns how many letters have a last entry that cannot be read, and at most 100 such
// entries, sorted by the letters' partition and offset. Records whose key names no letter are not
// among them.
func (l *Ledger) Broken() (letters int64, some []*EntryError) {
	for _, f := range l.states {
		letters += int64(f.sets[stateBroken].Len() + f.sets[stateNewer].Len())
	}
	byPlace := func(a, b place) int {
		return cmp.Or(cmp.Compare(a.partition, b.partition), cmp.Compare(a.offset, b.offset))
	}
	for _, at := range slices.SortedFunc(maps.Keys(l.broken), byPlace) {
		some = append(some, l.broken[at])
	}
	return letters, some
}

// Unreadable reports whether the last entry about a letter cannot be read. Such a letter counts as
// open, and may have been redriven. For a [Duplicate] whose entry names the original letter, it
// reports about that letter.
func (l *Ledger) Unreadable(partition int32, offset int64) bool {
	f := l.states[partition]
	if f == nil {
		return false
	}
	offset = f.letterOf(offset)
	return f.sets[stateBroken].Has(offset) || f.sets[stateNewer].Has(offset)
}

// Runs returns the redrive runs of the topic: by run id, the last value of that key. The values are
// the ledger's; do not modify them.
func (l *Ledger) Runs() map[string][]byte { return maps.Clone(l.runs) }
