package consumer

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/forward"
	"github.com/sidingkafka/siding/headers"
)

// routed returns the event for the hooks about a copy with the headers written.
func (l copyLane) routed(c *forward.Copy, written []kgo.RecordHeader, value []byte) (e Routed) {
	e.Meta, _ = headers.Parse(written) // an error is why the record was dead-lettered
	origin := e.Meta.Original
	if e.Meta.Reason == headers.ReasonMalformed {
		origin = headers.Position{Topic: feedOf(c).topic, Partition: l.partition, Offset: c.Offset()}
	}
	e.Record = recordAt(origin, c.Key(), value, headers.Strip(written))
	return e
}

// delayOf returns the delay of the retry topic that a copy went to. A copy on a drained tier is of
// a record of that tier, written again.
func (l copyLane) delayOf(c *forward.Copy, topic string) time.Duration {
	for _, t := range l.siblings.Tiers {
		if t.Topic == topic {
			return t.Delay
		}
	}
	return feedOf(c).tier.Delay
}

// countDiscarded calls the hooks for a discarded record.
func (l copyLane) countDiscarded(seen *copySource, m headers.Meta, reason headers.Reason) {
	if len(l.c.hooks.discarded) == 0 {
		return
	}
	m.Reason = reason
	l.reportDiscarded(Routed{Record: recordAt(m.Original, seen.Key, seen.Value, seen.Headers), Meta: m})
}

func (l copyLane) reportDiscarded(e Routed) {
	for _, hook := range l.c.hooks.discarded {
		l.c.hooks.call("OnDiscarded", func() { hook.OnDiscarded(e) })
	}
}

// recordAt returns a record as it was read at a position.
func recordAt(p headers.Position, key, value []byte, h []kgo.RecordHeader) *kgo.Record {
	return &kgo.Record{
		Key: key, Value: value, Headers: h, Timestamp: p.Timestamp, Topic: p.Topic, Partition: p.Partition, Offset: p.Offset,
		LeaderEpoch: -1, ProducerID: -1, ProducerEpoch: -1,
	}
}
