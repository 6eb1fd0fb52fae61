package consumer

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

// copied tells the hooks of a copy that is safe. What they are told is what is in the headers that
// were written; so nothing has to be kept for them while the copy is on its way.
func (l *lane) copied(fw *forward, r *kgo.Record) {
	h := &l.c.hooks
	if len(h.deadLettered)+len(h.parked) == 0 || fw.note {
		return // nearly always, and this path is hot where everything fails
	}
	dead := r.Topic == l.siblings.DLQ
	if dead && len(h.deadLettered) == 0 || !dead && len(h.parked) == 0 {
		return
	}
	e := l.routed(fw, fw.headers(), r.Value)
	e.At = headers.Position{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp}
	if dead {
		for _, hook := range h.deadLettered {
			l.c.hooks.call("OnDeadLettered", func() { hook.OnDeadLettered(e) })
		}
		return
	}
	e.Tier = l.delayOf(fw, r.Topic)
	for _, hook := range h.parked {
		l.c.hooks.call("OnParked", func() { hook.OnParked(e) })
	}
}

// routed is what the hooks are told of a copy with these headers.
func (l *lane) routed(fw *forward, written []kgo.RecordHeader, value []byte) (e Routed) {
	e.Meta, _ = headers.Parse(written) // broken ones are what the record was dead-lettered for
	origin := e.Meta.Original
	if e.Meta.Reason == headers.ReasonMalformed {
		origin = headers.Position{Topic: fw.feed.topic, Partition: l.partition, Offset: fw.offset}
	}
	e.Record = recordAt(origin, fw.rec.Key, value, headers.Strip(written))
	return e
}

// delayOf is the delay of the retry topic that a copy went to. One that is parked again stays where
// it was.
func (l *lane) delayOf(fw *forward, topic string) time.Duration {
	for _, t := range l.siblings.Tiers {
		if t.Topic == topic {
			return t.Delay
		}
	}
	return fw.feed.delay
}

// countDiscarded tells the hooks of a record that is discarded.
func (l *lane) countDiscarded(seen *copySource, m headers.Meta, reason headers.Reason) {
	if len(l.c.hooks.discarded) == 0 {
		return
	}
	m.Reason = reason
	l.reportDiscarded(Routed{Record: recordAt(m.Original, seen.key, seen.value, seen.headers), Meta: m})
}

func (l *lane) reportDiscarded(e Routed) {
	for _, hook := range l.c.hooks.discarded {
		l.c.hooks.call("OnDiscarded", func() { hook.OnDiscarded(e) })
	}
}

// recordAt is a record as it was read at a position.
func recordAt(p headers.Position, key, value []byte, h []kgo.RecordHeader) *kgo.Record {
	return &kgo.Record{
		Key: key, Value: value, Headers: h, Timestamp: p.Timestamp, Topic: p.Topic, Partition: p.Partition, Offset: p.Offset,
		LeaderEpoch: -1, ProducerID: -1, ProducerEpoch: -1,
	}
}
