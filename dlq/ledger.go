package dlq

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/client"
)

// maxBroken is how many broken entries of a ledger are kept, to be shown.
const maxBroken = 100

// Ledger is what became of the letters of a dead-letter topic, as the records of
// its ledger topic say: the last one about a letter counts. Letters of which
// nothing is said are open, and so are those whose entry is broken. Entries about
// a dead-letter topic of the same name that was deleted since are passed over. That
// a consumer discarded a letter counts where the last record about that letter says
// that the same run brought it back: see [Entry.DiscardReport].
//
// It takes at most two bytes of memory a letter that it knows of, two more of one
// that is [Redriven] or of which a consumer says something, and bits where they are
// dense; where they are so sparse that of many thousands in a row only a few have an
// entry, more.
//
// [Ledger.Read] changes it, and must not run together with anything else. Once it
// was read, all other methods can be used concurrently with each other.
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

// place is where a letter stands in its topic.
type place struct {
	partition int32
	offset    int64
}

func (a place) compare(b place) int {
	if a.partition != b.partition {
		return int(a.partition) - int(b.partition)
	}
	return int(min(max(a.offset-b.offset, -1), 1))
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
// nothing can be written down before the topic is created.
func (l *Ledger) Missing() bool { return l.missing }

// Read reads the ledger up to where it ends when the reading begins, committed
// records only. The first call reads all of it, a later one goes on where the one
// before stopped, however that ended.
//
// progress, if not nil, is told how many offsets of how many were passed, at the
// beginning, from time to time, and at the end. each, if not nil, gets every
// record as it comes, with those of runs and with broken ones, but for entries
// about another topic id; it must not use the ledger.
//
// Broken entries don't end the reading: see [Ledger.Broken]. An error that wraps
// [ErrNewerVersion] says that all was read, and names the first letter of which the
// last entry is from a newer siding: it is best left alone. After any other error
// something is missing, and letters may look open that are not; the next call goes
// on. It is an error when the dead-letter topic does not exist, or was made anew
// since the first call: begin with a new Ledger then.
func (l *Ledger) Read(ctx context.Context, progress func(read, total int64), each func(*LedgerRecord)) error {
	if err := l.find(ctx); err != nil {
		return fmt.Errorf("dlq: read ledger %q: %w", l.name, err)
	}
	if l.missing {
		l.forget()
		l.whole = true
		return nil
	}
	var errs []error
	s := scan{topic: l.name, opts: l.opts, progress: progress, keep: func(r *kgo.Record) bool {
		n := ParseLedgerRecord(r)
		l.at.advance(r)
		if l.take(n) && each != nil {
			each(n)
		}
		return true
	}, problem: func(err error) bool {
		errs = append(errs, err)
		return true
	}}
	s.run(ctx, l.at)
	if err := errors.Join(errs...); err != nil {
		l.whole = false
		return fmt.Errorf("dlq: read ledger %q: %w", l.name, err)
	}
	l.whole = true
	l.confirmReports()
	return l.newer()
}

// ensure reads the ledger unless that was done, as every method does that needs it.
func (l *Ledger) ensure(ctx context.Context) error {
	if l.whole {
		return nil
	}
	return l.Read(ctx, nil, nil)
}

// ledgerPoll is a look at the two topics.
type ledgerPoll struct {
	id, ledgerID     kadm.TopicID
	letters, entries int // partitions
	missing          bool
}

// poll looks at them, and makes sure that the letters' is still the one that it was.
func (l *Ledger) poll(ctx context.Context) (s ledgerPoll, err error) {
	if l.topic == "" || l.name == "" {
		return s, errors.New("there is no topic, or no ledger")
	}
	adm, err := client.NewAdmin(l.opts...)
	if err != nil {
		return s, err
	}
	defer adm.Close()
	topics, err := adm.ListTopics(ctx, l.topic, l.name)
	if err != nil {
		return s, fmt.Errorf("list topics: %w", err)
	}
	letters, ledger := topics[l.topic], topics[l.name]
	switch {
	case errors.Is(letters.Err, kerr.UnknownTopicOrPartition):
		return s, fmt.Errorf("the dead-letter topic %q does not exist", l.topic)
	case letters.Err != nil:
		return s, fmt.Errorf("describe topic %q: %w", l.topic, letters.Err)
	case l.begun && l.id != letters.ID:
		return s, fmt.Errorf("the dead-letter topic %q was made anew meanwhile: begin again", l.topic)
	case ledger.Err != nil && !errors.Is(ledger.Err, kerr.UnknownTopicOrPartition):
		return s, fmt.Errorf("describe topic %q: %w", l.name, ledger.Err)
	}
	return ledgerPoll{letters.ID, ledger.ID, len(letters.Partitions), len(ledger.Partitions), ledger.Err != nil}, nil
}

// find takes down what is seen of the topics.
func (l *Ledger) find(ctx context.Context) error {
	s, err := l.poll(ctx)
	if err != nil {
		return err
	}
	if l.begun && l.ledgerID != s.ledgerID {
		l.forget() // the ledger was made, or made anew: what the old one said is gone
	}
	l.begun, l.id, l.ledgerID, l.missing = true, s.id, s.ledgerID, s.missing
	return nil
}

// take takes down a note, and reports whether it is about this topic.
func (l *Ledger) take(n *LedgerRecord) bool {
	if run, ok := n.DiscardReport(); ok {
		l.addReport(run, n)
		return true
	}
	if n.Run != "" {
		l.keep(n)
		return true
	}
	if id := n.Entry.TopicID; id != ([16]byte{}) && id != l.id && l.id != (kadm.TopicID{}) {
		return false
	}
	at := place{n.Record.Partition, n.Letter}
	if n.Letter < 0 {
		// Nothing else can be said of it; it is told apart from letters by where it stands itself.
		at.offset = -1 - n.Record.Offset
	}
	delete(l.broken, at)
	e, broken := errors.AsType[*EntryError](n.Err)
	if broken {
		l.keepBroken(at, e)
	}
	if n.Letter < 0 {
		return true
	}
	l.addRedriven(at, &n.Entry)
	switch f := l.stateCodeOf(at.partition); {
	case broken && errors.Is(e, ErrNewerVersion):
		f.set(n.Letter, stateNewer)
	case broken:
		f.set(n.Letter, stateBroken)
	case n.Entry.State == Duplicate:
		if behind, ok := n.Entry.behind(l.topic, at); ok {
			f.duplicate(n.Letter, behind)
		} else {
			f.set(n.Letter, none)
		}
	default:
		f.resolve(n.Letter, n.Entry.State, n.resolvedAt())
	}
	return true
}

// keepBroken keeps a broken entry to be shown. One about a letter takes the room of a record that is about none: those do no harm.
func (l *Ledger) keepBroken(at place, e *EntryError) {
	if len(l.broken) >= maxBroken {
		for other := range l.broken {
			if at.offset >= 0 && other.offset < 0 {
				delete(l.broken, other)
				break
			}
		}
	}
	if len(l.broken) < maxBroken {
		l.broken[at] = e
	}
}

func (l *Ledger) stateCodeOf(partition int32) *stateSets {
	f := l.states[partition]
	if f == nil {
		f = &stateSets{}
		l.states[partition] = f
	}
	return f
}

// keep keeps the state of a run. Whatever else it has is under longer keys, and for who asked to get each note.
func (l *Ledger) keep(n *LedgerRecord) {
	switch {
	case n.Record.Partition != 0 || strings.Contains(n.Run, "/"):
	case n.Record.Value == nil:
		delete(l.runs, n.Run)
	default:
		l.runs[n.Run] = slices.Clone(n.Record.Value)
	}
}

// newer is the error about entries that a newer siding wrote.
func (l *Ledger) newer() error {
	n := 0
	for _, f := range l.states {
		n += f.sets[stateNewer].Len()
	}
	if n == 0 {
		return nil
	}
	_, some := l.Broken()
	for _, e := range some {
		if errors.Is(e, ErrNewerVersion) {
			return fmt.Errorf("dlq: read ledger %q: %d letters: %w", l.name, n, e)
		}
	}
	return fmt.Errorf("dlq: read ledger %q: %d letters: %w", l.name, n, ErrNewerVersion)
}

// State is what became of a letter; empty if nothing did, or is known. A [Duplicate] of
// which the entry names the letter is one only while that letter is settled by
// something that was done about its record; else it is [Unknown] if the letter is,
// or empty, and the methods that read letters judge it like one without an entry.
func (l *Ledger) State(partition int32, offset int64) State { return l.states[partition].state(offset) }

// pending reports whether a letter was brought back and has no outcome, or is a copy that an entry settles by such a letter.
func (l *Ledger) pending(partition int32, offset int64) bool {
	f := l.states[partition]
	return f.reportedAt(f.letterOf(offset)) == Redriven
}

// since is the Unix second at which a letter was settled that is, and whose state resolves its record.
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
		if about := a.offset >= 0; about != (b.offset >= 0) {
			if about {
				return -1
			}
			return 1
		}
		return a.compare(b)
	}
	for _, at := range slices.SortedFunc(maps.Keys(l.broken), letterFirst) {
		some = append(some, l.broken[at])
	}
	return letters, some
}

// Unreadable reports whether the last entry about a letter can't be read: its
// letter counts as open, and nobody knows whether it was brought back. A
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

// position is the place of a letter in words.
func position(topic string, at place) headers.Position {
	return headers.Position{Topic: topic, Partition: at.partition, Offset: at.offset}
}
