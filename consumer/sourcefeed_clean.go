package consumer

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

// cleanSource removes the reserved headers from a source record, which they must not steer. It
// returns nil, unless the redrive headers name this source's own dead-letter topic. Then it returns
// them, with what they say of the record's earlier life: its first failure and its history.
//
// It keeps their original position only if that is at a lower offset of this partition, to which
// redrive writes copies. Otherwise a record could take the idempotency key of a later record.
// Headers cannot show whether it took the key of an earlier one. See DESIGN.md, "Idempotency keys".
//
// Policy.MaxAge counts from the time of the redrive. A record cannot have been redriven before its
// own timestamp, or later than now, so cleanSource moves such a time. Otherwise a dead letter that
// a tool copied back with its headers, an earlier redrive's time among them, would expire at its
// first failure, and a time in the future would switch MaxAge off.
func (f *sourceFeed) cleanSource(rec *kgo.Record) *headers.Meta {
	clean := headers.Strip(rec.Headers)
	if len(clean) == len(rec.Headers) {
		return nil
	}
	m, ok := headers.ParseSource(rec.Headers, f.lane.siblings.DLQ)
	rec.Headers = clean
	if !ok {
		return nil
	}
	if o := m.Redrive.Original; o.Topic != f.lane.topic || o.Partition != f.partition || o.Offset >= rec.Offset {
		m.Redrive.Original = headers.Position{}
	}
	if at := m.Redrive.At; !at.IsZero() {
		if at.Before(rec.Timestamp) {
			at = rec.Timestamp
		}
		if now := time.Now(); at.After(now) {
			at = now
		}
		m.Redrive.At = at
	}
	return &m
}
