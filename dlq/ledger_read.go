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
	"github.com/sidingkafka/siding/internal/ledgerrecord"
)

// Read reads the ledger's committed records, up to the end that the topic has when Read begins. The
// first call reads from the start. Each later call continues where the last one stopped, also after
// an error.
//
// progress, if not nil, is called with the number of offsets that were read, and their total: at
// the beginning, from time to time, and at the end. each, if not nil, is called with every record,
// also those of runs and broken ones, except entries about another topic id and notes of discarded
// records (see [Ledger.DiscardNotes]). It must not use the ledger.
//
// Broken entries do not end the reading: see [Ledger.Broken]. An error that wraps [ErrNewerVersion]
// means that all was read, but that a newer siding wrote the last entry about a letter. It names
// the first such letter: leave it alone. After any other error entries are missing, and resolved
// letters may look open, until another call succeeds. If the error is about some partitions, the
// others were read: [Ledger.Known] says which. Read returns an error if the dead-letter
// topic does not exist ([ErrNoTopic]), or was recreated since the first call: then begin with a new
// Ledger.
func (l *Ledger) Read(ctx context.Context, progress func(read, total int64), each func(*LedgerRecord)) error {
	l.whole, l.reached = false, nil
	cl, err := newScanClient(l.opts, false)
	if err != nil {
		return fmt.Errorf("dlq: read ledger %q: %w", l.name, err)
	}
	defer cl.Close()
	if err := l.find(ctx, cl); err != nil {
		return fmt.Errorf("dlq: read ledger %q: %w", l.name, err)
	}
	if l.missing {
		l.lost.drop(ctx, cl, l.topic, l.states)
		return l.ended(nil)
	}
	s := scan{topic: l.name, cl: cl, progress: progress}
	reached, err := s.some(ctx, l.at, func(r *kgo.Record) {
		if n := l.record(r); n != nil && each != nil {
			each(n)
		}
	})
	l.reached = reached
	if l.lost.drop(ctx, cl, l.topic, l.states) {
		l.taken++
	}
	return l.ended(err)
}

// record stores a record of the ledger, and returns it parsed; nil if it is about another topic, or
// about no letter and no run.
func (l *Ledger) record(r *kgo.Record) *LedgerRecord {
	l.at.advance(r)
	if isDiscardNote(r) {
		return nil
	}
	n := ParseLedgerRecord(r)
	if !l.take(n) {
		return nil
	}
	if _, _, isReport := ledgerrecord.DiscardReportOf(n.Run); isReport || !strings.Contains(n.Run, "/") || strings.HasPrefix(n.Run, ledgerrecord.PruneKey) {
		l.taken++ // else it is a note of something else
	}
	return n
}

// ended stores how a read ended, and returns the error of it.
func (l *Ledger) ended(err error) error {
	if l.whole = err == nil; l.whole && l.missing {
		l.forget()
		l.whole = true
		return nil
	}
	for p, f := range l.states {
		if l.Known(p) {
			f.confirmReports()
		}
	}
	if err != nil {
		return fmt.Errorf("dlq: read ledger %q: %w", l.name, err)
	}
	return l.newer()
}

// find describes the two topics by a client, and stores their ids.
func (l *Ledger) find(ctx context.Context, cl *kgo.Client) error {
	letters, ledger, err := l.among(topicsOf(ctx, kadm.NewClient(cl), l.topic, l.name))
	if err == nil {
		l.found(letters, ledger)
	}
	return err
}

// found stores the ids of the two topics.
func (l *Ledger) found(letters, ledger kadm.TopicDetail) {
	if l.begun && l.ledgerID != ledger.ID {
		l.forget() // the ledger was created or recreated: the old entries are gone
		l.taken++
	}
	l.begun, l.id, l.ledgerID, l.missing = true, letters.ID, ledger.ID, ledger.Err != nil
	l.lost.found(letters.Partitions)
}

// ensure reads the ledger, unless the last Read came to its end.
func (l *Ledger) ensure(ctx context.Context) error {
	if l.whole {
		return nil
	}
	return l.Read(ctx, nil, nil)
}

// ErrNoTopic reports that the dead-letter topic of a ledger does not exist; the error around it
// names the topic. A single broker may have stale metadata, so the topic can be there at the next
// call.
var ErrNoTopic = errors.New("does not exist")

// poll describes the two topics. It returns an error if the dead-letter topic was recreated since
// the last find. The ledger has an error if its topic does not exist.
func (l *Ledger) poll(ctx context.Context) (letters, ledger kadm.TopicDetail, err error) {
	adm, err := client.NewAdmin(l.opts...)
	if err != nil {
		return letters, ledger, err
	}
	defer adm.Close()
	return l.among(topicsOf(ctx, adm, l.topic, l.name))
}

// topicsOf describes a dead-letter topic and its ledger.
func topicsOf(ctx context.Context, adm *kadm.Client, letters, ledger string) (kadm.TopicDetails, error) {
	if letters == "" || ledger == "" {
		return nil, errors.New("the name of the topic or of the ledger is empty")
	}
	topics, err := adm.ListTopics(ctx, letters, ledger)
	if err != nil {
		return nil, fmt.Errorf("list topics: %w", err)
	}
	return topics, nil
}

// among finds the two topics among those that brokers described, if they did, with the errors of
// poll.
func (l *Ledger) among(topics kadm.TopicDetails, unanswered error) (letters, ledger kadm.TopicDetail, err error) {
	letters, ledger = topics[l.topic], topics[l.name]
	switch {
	case unanswered != nil:
		err = unanswered
	case errors.Is(letters.Err, kerr.UnknownTopicOrPartition):
		err = fmt.Errorf("the dead-letter topic %q %w", l.topic, ErrNoTopic)
	case letters.Err != nil:
		err = fmt.Errorf("describe topic %q: %w", l.topic, letters.Err)
	case l.begun && l.id != letters.ID:
		err = fmt.Errorf("the dead-letter topic %q was recreated: begin with a new Ledger", l.topic)
	case ledger.Err != nil && !errors.Is(ledger.Err, kerr.UnknownTopicOrPartition):
		err = fmt.Errorf("describe topic %q: %w", l.name, ledger.Err)
	}
	return letters, ledger, err
}

// take stores a record of the ledger, and reports whether it is about this topic.
func (l *Ledger) take(n *LedgerRecord) bool {
	if run, _, ok := ledgerrecord.DiscardReportOf(n.Run); ok {
		l.states.of(n.Record.Partition).addReport(run, n.Letter, n.Entry.State != "")
		return true
	}
	if n.Run != "" {
		l.keep(n)
		return true
	}
	if id := n.Entry.TopicID; id != ([16]byte{}) && id != l.id && l.id != (kadm.TopicID{}) {
		return false
	}
	if n.Letter < 0 {
		return true // it is about no letter
	}
	at := place{n.Record.Partition, n.Letter}
	delete(l.broken, at)
	e, broken := errors.AsType[*EntryError](n.Err)
	if broken && len(l.broken) < maxBroken {
		l.broken[at] = e
	}
	f := l.states.of(at.partition)
	f.addRedriven(n.Letter, &n.Entry)
	f.epochs.add(n.Letter, n.Entry.Epochs)
	switch {
	case f.epochs.isLost(n.Letter):
		f.drop(n.Letter)
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

// maxBroken is how many broken entries of a ledger are kept, for display.
const maxBroken = 100

// keep stores the state of a run. Other records of a run have longer keys, and only go to the
// callback of Read.
func (l *Ledger) keep(n *LedgerRecord) {
	switch {
	case n.Record.Partition != 0 || strings.Contains(n.Run, "/"):
	case n.Record.Value == nil:
		delete(l.runs, n.Run)
	default:
		l.runs[n.Run] = slices.Clone(n.Record.Value)
	}
}

// newer returns the error about entries that a newer siding wrote, if there are any.
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
