package consumer

import (
	"fmt"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/forward"
	"github.com/sidingkafka/siding/consumer/internal/logthrottle"
	"github.com/sidingkafka/siding/headers"
)

// copyLane adapts a lane to its copies: it is their [forward.Lane], and the [forward.Observer] that
// logs, counts and calls hooks.
type copyLane struct{ *lane }

func (l copyLane) Lock()   { l.mu.Lock() }
func (l copyLane) Unlock() { l.mu.Unlock() }

// Changed implements forward.Lane.
func (l copyLane) Changed() {
	l.recheckHold()
	l.notify()
}

// Halt implements forward.Lane.
func (l copyLane) Halt(c *forward.Copy) {
	l.haltLocked(fmt.Sprintf("halted on offset %d of %s, which is too large for %s: raise its max.message.bytes", c.Offset(), feedOf(c).topic, c.To()))
}

// DiscardNote implements forward.Lane.
func (l copyLane) DiscardNote(written []kgo.RecordHeader) *kgo.Record {
	m, _ := headers.Parse(written) // an error is why it was dead-lettered
	return l.discardNote(&m)
}

// Acknowledged implements forward.Observer. Hooks get the headers that were written, so a copy in
// flight keeps nothing for them.
func (l copyLane) Acknowledged(c *forward.Copy, r *kgo.Record) {
	h := &l.c.hooks
	dead := r.Topic == l.siblings.DLQ
	if dead && len(h.deadLettered) == 0 || !dead && len(h.parked) == 0 || c.IsNote() {
		return // the usual case, on a path that is hot when every record fails
	}
	e := l.routed(c, c.Headers(), r.Value)
	e.At = headers.Position{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp}
	if dead {
		for _, hook := range h.deadLettered {
			l.c.hooks.call("OnDeadLettered", func() { hook.OnDeadLettered(e) })
		}
		return
	}
	e.Tier = l.delayOf(c, r.Topic)
	for _, hook := range h.parked {
		l.c.hooks.call("OnParked", func() { hook.OnParked(e) })
	}
}

// Refused implements forward.Observer. A refusal concerns all copies of a lane at the same time, so
// the log has one line with their number.
func (l copyLane) Refused(c *forward.Copy, r forward.Refusal) {
	l.c.topics.Suspect(r.To, r.Err)
	level, times := slog.LevelDebug, 1
	if n, due := l.c.throttle.Due([]byte("refused"+r.To+r.Err.Error()), logthrottle.Every); due {
		level, times = slog.LevelError, n
	}
	l.log.Log(l.c.ctx, level, "siding: a copy was refused; the lane waits and tries again", "to", r.To, "from", feedOf(c).topic,
		"offset", c.Offset(), "try", r.Try, "wait", r.Wait, "refusals", times, "error", r.Err)
}

// Ended implements forward.Observer.
func (l copyLane) Ended(c *forward.Copy, o forward.Outcome, err error) {
	if o == forward.NoteLost {
		l.log.Error("siding: a redriven record was discarded, but the ledger could not be written", "ledger", c.To(), "error", err)
		return
	}
	e := l.routed(c, c.Whole(), c.Value())
	switch o {
	case forward.Diverted:
		l.reportFinal(&e.Meta, "dlq", headers.ReasonTooLarge)
	case forward.Dropped:
		l.reportFinal(&e.Meta, outcomeDiscarded, headers.ReasonTooLarge)
		e.Meta.Reason = headers.ReasonTooLarge
		l.reportDiscarded(e)
	case forward.Halted:
		l.log.Error("siding: the lane halts on a record that is too large for its dead-letter topic; raise its max.message.bytes",
			"to", c.To(), "from", feedOf(c).topic, "offset", c.Offset(), "class", e.Meta.Class, "bytes", c.Size())
	case forward.Omitted:
		at := headers.Position{Topic: e.Record.Topic, Partition: e.Record.Partition, Offset: e.Record.Offset}
		l.c.countOmitted(l.topic)
		l.log.Error("siding: dead letter written without its value, which does not fit; raise the topic's max.message.bytes",
			"to", c.To(), "from", feedOf(c).topic, "offset", c.Offset(), "value_at", at.String(), "bytes", len(c.Value()))
	}
}

// feedOf returns the feed that a copy's record was read from.
func feedOf(c *forward.Copy) *feed { return c.From().(*feed) }
