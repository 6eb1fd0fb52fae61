package consumer

import (
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/forward"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

// A discarded record leaves no copy. If a redrive run wrote it, the run would count it as
// succeeded. So the lane writes a discard report to the ledger, and the record is finished when
// that is acknowledged.

// discard finishes a discarded record, after its discard report if it needs one.
func (l *lane) discard(f *feed, offset int64, m *headers.Meta) {
	if note := l.discardNote(m); note != nil {
		l.copies.Send(forward.NewNote(f, offset, *note))
		return
	}
	l.finish(f, offset)
}

// discardNote returns the discard report for the ledger. It returns nil for a record that was not
// redriven from this source's dead-letter topic, whatever else its headers claim. A letter may be
// on another partition than its lane's, if another producer wrote it, so the report may be for
// another partition too. It counts only together with the ledger's entry about the letter: see
// [dlq.Entry.DiscardReport].
func (l *lane) discardNote(m *headers.Meta) *kgo.Record {
	from := m.Redrive.From
	if m.Redrive.ID == "" || strings.Contains(m.Redrive.ID, "/") || from.Topic != l.siblings.DLQ {
		return nil // no run has an id with a slash
	}
	e := dlq.Entry{State: dlq.Discarded, Run: m.Redrive.ID, At: time.Now(), By: "group " + l.c.cfg.Group, Why: m.Message, Class: m.Class}
	return e.DiscardReport(l.siblings.Ledger, from.Partition, from.Offset)
}
