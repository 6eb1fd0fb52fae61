package consumer

import (
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/forward"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
)

// A discarded record leaves no copy. If a redrive run wrote it, the run would count it as
// succeeded. So the lane writes a discard report to the ledger. If the policy wants it, the lane
// also writes a note of each discarded record, so that it can be asked for later. The record is
// finished when these are acknowledged.

// discard finishes a discarded record, after what the ledger has to have about it.
func (l copyLane) discard(f *feed, seen *copySource, m *headers.Meta) {
	from := forward.Origin(f)
	if seen.end != nil {
		from = seen.end
	}
	notes := l.discardNotes(from, seen.Offset, m)
	if len(notes) > 0 {
		l.ending(f, seen, nil)
	}
	for _, note := range notes {
		l.copies.Send(note)
	}
	if len(notes) == 0 {
		l.finish(f, seen.Offset)
	}
}

// discardNotes returns what the ledger has to have about a discarded record before it is finished.
func (l copyLane) discardNotes(from forward.Origin, offset int64, m *headers.Meta) []*forward.Copy {
	report, f := l.discardReport(m), feedOfOrigin(from)
	switch {
	case !l.policy.NoteDiscards && report == nil:
		return nil
	case !l.policy.NoteDiscards:
		return []*forward.Copy{forward.NewNote(from, offset, *report, false)}
	case report == nil:
		return []*forward.Copy{forward.NewNote(from, offset, *l.discardNote(f, offset, m), true)}
	}
	both := &finishedByTwo{Origin: from, left: 2}
	return []*forward.Copy{
		forward.NewNote(both, offset, *report, false),
		forward.NewNote(both, offset, *l.discardNote(f, offset, m), true),
	}
}

// discardNote returns the note of a discarded record. If its headers are broken, or name another
// partition, it has no original position here; then the note names its position on the retry topic.
func (l copyLane) discardNote(f *feed, offset int64, m *headers.Meta) *kgo.Record {
	at, first := m.Original, original(m.Original, &m.Redrive)
	if m.Reason == headers.ReasonMalformed || at.Partition != l.partition {
		at = headers.Position{Topic: f.topic, Partition: l.partition, Offset: offset}
		first = at
	}
	n := dlq.DiscardNote{
		Group: l.c.cfg.Group, Partition: l.partition, Offset: at.Offset, Original: first,
		Class: m.Class, Attempts: m.Attempts, At: time.Now(),
	}
	return n.Record(l.siblings.Ledger)
}

// discardReport returns the discard report for the ledger. It returns nil for a record that was not
// redriven from this source's dead-letter topic, whatever else its headers claim. A letter may be
// on another partition than its lane's, if another producer wrote it, so the report may be for
// another partition too, but not for one that the dead-letter topic lacks: made-up headers would
// hold up the lane until the report is given up. It counts only together with the ledger's entry
// about the letter: see [ledgerrecord.DiscardReportKey].
func (l copyLane) discardReport(m *headers.Meta) *kgo.Record {
	from := m.Redrive.From
	if m.Redrive.ID == "" || strings.Contains(m.Redrive.ID, "/") || from.Topic != l.siblings.DLQ {
		return nil // no run has an id with a slash
	}
	if n, ok := l.c.provisioner.partitionsOf(from.Topic); ok && from.Partition >= n {
		l.c.recordLog.add(recordKind{event: eventNoteLost, topic: l.topic, to: l.siblings.Ledger, why: fmt.Sprintf("the record's headers name partition %d of %s, which has %d", from.Partition, from.Topic, n)},
			recordExample{partition: l.partition, offset: m.Original.Offset})
		return nil
	}
	e := dlq.Entry{
		State: dlq.Discarded, Run: m.Redrive.ID, At: time.Now(), By: "group " + l.c.cfg.Group, Class: m.Class,
		Why: strings.ToValidUTF8(m.Message[:min(len(m.Message), headers.MaxMessage)], ""),
	}
	r := e.Record(l.siblings.Ledger, from.Partition, from.Offset)
	r.Key = ledgerrecord.DiscardReportKey(e.Run, from.Offset)
	return r
}

// finish marks as finished a record that needed no copy.
func (l copyLane) finish(f *feed, offset int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != laneGone {
		f.tracker.Finish(offset)
	}
}
