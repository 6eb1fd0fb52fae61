package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

// Delivery is what siding knows of a delivery.
type Delivery struct {
	// Attempt is the number of this delivery, 1 for the first.
	Attempt int
	// Tier is the delay of the retry topic that the record comes from; zero on its source.
	Tier time.Duration
	// FirstFailedAt is when the record failed first; zero if it never did.
	FirstFailedAt time.Time
	// NotBefore is when the record was due; zero on its source. One that redrive brought back is
	// due at once, as of 1970.
	NotBefore time.Time
	// RedriveID names the redrive run that brought the record back, if one did.
	RedriveID string
	// Original is where the record was first read, before all redrives; Physical is where this
	// delivery of it stands.
	Original, Physical headers.Position

	group string
}

// IdempotencyKey is the same for every delivery of a record to a group, retries and redrives
// included, those to the source too: group/topic/partition/offset of the original. A handler that
// must not act twice stores it with what it did.
//
// The group is the oldest name that it has in the configuration, which is the last of
// Config.FormerGroups: so records that began under another name keep their keys, and so do those
// that ran there and were not committed. Whoever takes that name out of the configuration changes
// the keys of all records.
//
// A record that is brought back to a source which was recreated since it was read first, or whose
// broker has no topic ids (before Kafka 2.8), has another key there: its former place is another
// record's.
func (f Delivery) IdempotencyKey() string {
	return fmt.Sprintf("%s/%s", f.group, f.Original)
}

// DeliveryOf tells about the delivery that ctx belongs to: the context that the handler was given,
// or one derived from it. With another context it knows what the record itself tells.
func DeliveryOf(ctx context.Context, r *kgo.Record) Delivery {
	a := attemptOf(ctx)
	if a == nil {
		at := headers.Position{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp}
		return Delivery{Attempt: 1, Original: at, Physical: at}
	}
	f := Delivery{Attempt: 1, Tier: a.from.delay, Physical: a.physical(), group: a.from.group}
	if m := a.meta; m != nil {
		f.Attempt, f.FirstFailedAt, f.NotBefore, f.RedriveID = m.Attempts+1, m.FirstFailedAt, m.NotBefore, m.Redrive.ID
		f.Original = original(m.Original, &m.Redrive)
		return f
	}
	f.Original = f.Physical
	f.Original.TopicID = a.from.topicID
	if a.redrive != nil {
		f.RedriveID, f.Original = a.redrive.ID, original(f.Original, a.redrive)
	}
	return f
}

// original is where a record was first read, of which a copy may have come back to the source.
func original(at headers.Position, r *headers.Redrive) headers.Position {
	if r.Original.Topic == "" {
		return at
	}
	first := r.Original
	first.TopicID = at.TopicID
	return first
}
