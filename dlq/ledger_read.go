package dlq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/client"
)

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
// on. It is an error when the dead-letter topic does not exist, or was recreated
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
	s := scan{topic: l.name, opts: l.opts, progress: progress}
	_, err := s.all(ctx, l.at, func(r *kgo.Record) {
		n := ParseLedgerRecord(r)
		l.at.advance(r)
		if l.take(n) && each != nil {
			each(n)
		}
	})
	if err != nil {
		l.whole = false
		return fmt.Errorf("dlq: read ledger %q: %w", l.name, err)
	}
	l.whole = true
	l.confirmReports()
	return l.newer()
}

// find polls the two topics and keeps what it finds.
func (l *Ledger) find(ctx context.Context) error {
	s, err := l.poll(ctx)
	if err != nil {
		return err
	}
	if l.begun && l.ledgerID != s.ledgerID {
		l.forget() // the ledger was created or recreated: the old entries are gone
	}
	l.begun, l.id, l.ledgerID, l.missing = true, s.id, s.ledgerID, s.missing
	return nil
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
		return s, fmt.Errorf("the dead-letter topic %q was recreated meanwhile: begin again", l.topic)
	case ledger.Err != nil && !errors.Is(ledger.Err, kerr.UnknownTopicOrPartition):
		return s, fmt.Errorf("describe topic %q: %w", l.name, ledger.Err)
	}
	return ledgerPoll{letters.ID, ledger.ID, len(letters.Partitions), len(ledger.Partitions), ledger.Err != nil}, nil
}

// take keeps what a record of the ledger says, and reports whether it is about this topic.
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

// maxBroken is how many broken entries of a ledger are kept, to be shown.
const maxBroken = 100

// keepBroken keeps a broken entry to be shown. One about a letter takes the room of a record that
// is about none: those do no harm.
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

// keep keeps the state of a run. Whatever else it has is under longer keys, and for who asked to
// get each note.
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

// addReport takes down what a consumer says, or says no longer. Of a record that is broken as well:
// compaction has taken the one before it.
func (l *Ledger) addReport(run string, n *LedgerRecord) {
	at := place{n.Record.Partition, n.Letter}
	if n.Entry.State != "" {
		if len(l.reports.reported) < maxDiscardReports || l.reports.reported[run] != nil {
			l.reports.reported.add(run, at)
		}
		return
	}
	l.reports.reported.remove(run, at)
	if f := l.stateCodeOf(at.partition); l.reports.redriven.has(run, at) && f.sets[stateCode(Discarded)].Has(at.offset) {
		f.set(at.offset, stateCode(Redriven))
	}
}

// addRedriven takes down which run brought a letter back, if its last entry says that one did.
func (l *Ledger) addRedriven(at place, e *Entry) {
	if e.State == Redriven && l.reports.redriven.has(e.Run, at) {
		return
	}
	f := l.stateCodeOf(at.partition)
	// by the entry, or as it was believed
	if f.sets[stateCode(Redriven)].Has(at.offset) || f.sets[stateCode(Discarded)].Has(at.offset) {
		for run := range l.reports.redriven {
			l.reports.redriven.remove(run, at)
		}
	}
	if e.State == Redriven && e.Run != "" {
		l.reports.redriven.add(e.Run, at)
	}
}

// confirmReports marks the letters as discarded for which report and redriving run agree.
func (l *Ledger) confirmReports() {
	for run, said := range l.reports.reported {
		for partition, brought := range l.reports.redriven[run] {
			if said[partition] == nil {
				continue
			}
			for offset := range said[partition].All() {
				if brought.Has(offset) {
					l.stateCodeOf(partition).set(offset, stateCode(Discarded))
				}
			}
		}
	}
}
