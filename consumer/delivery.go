package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

// Delivery describes one delivery of a record to the handler.
type Delivery struct {
	// Attempt is the number of this delivery, 1 for the first.
	Attempt int
	// Tier is the delay of the retry topic that the record was read from; zero for its source.
	Tier time.Duration
	// FirstFailedAt is when the record first failed, before all redrives; zero if it never did.
	FirstFailedAt time.Time
	// NotBefore is when the record was due; zero on its source, unless it was held there, see
	// [Config].HoldKeys. A redriven record on a retry topic
	// is due at once: its NotBefore is in 1970.
	NotBefore time.Time
	// RedriveID is the id of the redrive run that wrote the record; empty if none did.
	RedriveID string
	// Original is where the record was first read, before all redrives. Physical is where this
	// delivery was read.
	Original, Physical headers.Position

	group string
}

// IdempotencyKey is the same for every delivery of a record to a group, including retries and
// redrives: group/topic/partition/offset of the original. A handler that must not act twice stores
// the key together with the effect.
//
// The group is the last of Config.FormerGroups, or Config.Group if there are none. So a record
// keeps its key when the group is renamed and FormerGroups has the old name. Removing the last name
// changes the keys of all records.
//
// A redriven record has another key if its source was recreated since it was first read: another
// record has its former position. The same holds if the broker has no topic ids (before Kafka 2.8).
func (f Delivery) IdempotencyKey() string {
	return fmt.Sprintf("%s/%s", f.group, f.Original)
}

// DeliveryOf returns the delivery that ctx belongs to. ctx is the handler's context, or derived
// from it. For another context, DeliveryOf returns a first delivery at the record's own position.
func DeliveryOf(ctx context.Context, r *kgo.Record) Delivery {
	a := attemptOf(ctx)
	if a == nil {
		at := headers.Position{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp}
		return Delivery{Attempt: 1, Original: at, Physical: at}
	}
	f := Delivery{Attempt: 1, Tier: a.in.from.delay, Physical: a.physical(), group: a.in.from.group}
	if m := a.in.meta; m != nil {
		f.Attempt, f.FirstFailedAt, f.NotBefore, f.RedriveID = m.Attempts+1, m.FirstFailedAt, m.NotBefore, m.Redrive.ID
		f.Original = original(m.Original, &m.Redrive)
		return f
	}
	f.Original = f.Physical
	f.Original.TopicID = a.in.from.topicID
	if m := a.redriven(); m != nil {
		f.FirstFailedAt, f.RedriveID, f.Original = m.FirstFailedAt, m.Redrive.ID, original(f.Original, &m.Redrive)
	}
	return f
}

// original returns where a record was first read: r's position if it names one, else at.
func original(at headers.Position, r *headers.Redrive) headers.Position {
	if r.Original.Topic == "" {
		return at
	}
	first := r.Original
	first.TopicID = at.TopicID
	return first
}
