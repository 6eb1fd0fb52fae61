package consumer

import (
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/forward"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

// A record that a redrive run brought back and that is discarded leaves no copy behind, and would
// count as one that succeeded. So the ledger of its dead-letter topic is told, and the record is
// finished when that is safe.

// discard finishes a record that is discarded.
func (l *lane) discard(f *feed, offset int64, m *headers.Meta) {
	if note := l.discardNote(m); note != nil {
		l.copies.Send(forward.NewNote(f, offset, *note))
		return
	}
	l.finish(f, offset)
}

// discardNote is the record of the ledger that says so; nil for a record that was not brought back
// from this source's dead letters, whatever else its headers claim. Letters are on their lane's
// partition, unless somebody else put them there, so the record may be for another one. It stands
// beside the ledger's entry about the letter and counts only with that: see
// [dlq.Entry.DiscardReport].
func (l *lane) discardNote(m *headers.Meta) *kgo.Record {
	from := m.Redrive.From
	if m.Redrive.ID == "" || strings.Contains(m.Redrive.ID, "/") || from.Topic != l.siblings.DLQ {
		return nil // an id with a slash is no run's
	}
	e := dlq.Entry{State: dlq.Discarded, Run: m.Redrive.ID, At: time.Now(), By: "group " + l.c.cfg.Group, Why: m.Message, Class: m.Class}
	return e.DiscardReport(l.siblings.Ledger, from.Partition, from.Offset)
}
