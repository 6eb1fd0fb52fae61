package consumer

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer/internal/forward"
	"github.com/sidingkafka/siding/headers"
)

// copyLane adapts a lane to its copies: it is their [forward.Lane], and the [forward.Observer] that
// logs, counts and calls hooks. It ends the records of the lane that are routed: with a copy, or
// with none.
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

// DiscardNotes implements forward.Lane.
func (l copyLane) DiscardNotes(c *forward.Copy) []*forward.Copy {
	m, _ := headers.Parse(c.Whole()) // an error is why it was dead-lettered
	return l.discardNotes(c.From(), c.Offset(), &m)
}

// Acknowledged implements forward.Observer. Hooks get the headers that were written, so a copy in
// flight keeps nothing for them.
func (l copyLane) Acknowledged(c *forward.Copy, r *kgo.Record) {
	h := &l.c.hooks
	dead := r.Topic == l.siblings.DLQ
	if dead && l.mayRefuseLetters() && !c.IsNote() {
		m, _ := headers.Parse(c.Whole())
		if m.Reason != headers.ReasonMalformed { // that is reported when it is found
			l.reportDead(&m, m.Reason, time.Now())
		}
	}
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

// Refused implements forward.Observer. A refusal concerns all copies of a topic at the same time.
func (l copyLane) Refused(c *forward.Copy, r forward.Refusal) {
	l.c.topics.Suspect(r.To, r.Err)
	l.c.recordLog.add(recordKind{event: eventRefused, topic: l.topic, to: r.To, why: r.Err.Error()}, l.example(c, "try", r.Try, "wait", r.Wait))
}

// Ended implements forward.Observer.
func (l copyLane) Ended(c *forward.Copy, o forward.Outcome, err error) {
	if o == forward.NoteLost {
		l.c.recordLog.add(recordKind{event: eventNoteLost, topic: l.topic, to: c.To(), why: err.Error()}, l.example(c))
		return
	}
	e := l.routed(c, c.Whole(), c.Value())
	switch o {
	case forward.Diverted:
		if _, again := c.From().(parkedAgain); !again {
			l.c.recordLog.takeBack(eventParked)
		}
		if !l.mayRefuseLetters() {
			l.reportDead(&e.Meta, headers.ReasonTooLarge, time.Now())
		}
	case forward.Dropped:
		l.takeBackMalformed(&e.Meta)
		l.reportDiscard(&e.Meta, headers.ReasonTooLarge, false, time.Now())
		e.Meta.Reason = headers.ReasonTooLarge
		l.reportDiscarded(e)
	case forward.Halted:
		l.takeBackMalformed(&e.Meta)
		l.log.Error("siding: the lane halts on a record that is too large for its dead-letter topic; raise its max.message.bytes",
			"to", c.To(), "feed", feedOf(c).topic, "offset", c.Offset(), "class", e.Meta.Class, "bytes", c.Size())
	case forward.Omitted:
		at := headers.Position{Topic: e.Record.Topic, Partition: e.Record.Partition, Offset: e.Record.Offset}
		l.c.telemetry.countOmitted(l.topic)
		l.c.recordLog.add(recordKind{event: eventOmitted, topic: l.topic, to: c.To()}, l.example(c, "value_at", at.String(), "bytes", len(c.Value())))
	}
}

// takeBackMalformed no longer counts a record of a retry topic with broken headers as
// dead-lettered. Other records were not counted yet.
func (l copyLane) takeBackMalformed(m *headers.Meta) {
	if m.Reason == headers.ReasonMalformed {
		l.c.recordLog.takeBack(eventDeadLettered)
	}
}

// example returns a copy's record for the log.
func (l copyLane) example(c *forward.Copy, about ...any) recordExample {
	return recordExample{partition: l.partition, feed: feedOf(c).topic, offset: c.Offset(), about: about}
}

// finishedByTwo is the origin of a record about which the ledger has to have two records. The
// lane's lock guards it.
type finishedByTwo struct {
	forward.Origin
	left int
}

// Finish implements forward.Origin.
func (o *finishedByTwo) Finish(offset int64) {
	if o.left--; o.left == 0 {
		o.Origin.Finish(offset)
	}
}

// parkedAgain is the origin of a record that goes to its tier again without an attempt. The log
// did not count it as parked.
type parkedAgain struct{ *feed }

// feedOf returns the feed that a copy's record was read from.
func feedOf(c *forward.Copy) *feed { return feedOfOrigin(c.From()) }

func feedOfOrigin(from forward.Origin) *feed {
	switch from := from.(type) {
	case *finishedByTwo:
		return feedOfOrigin(from.Origin)
	case parkedAgain:
		return from.feed
	case *keyEnd:
		return from.feed
	}
	return from.(*feed)
}

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
	m.Reason, m.History = reason, slices.Clone(m.History)
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

// copySource is what a copy needs of its record, kept from before the handler gets the record.
type copySource struct {
	forward.Source
	timestamp   time.Time
	redriven    *headers.Meta       // of a redriven source record: see cleanSource
	traceParent string              // of the failed attempt
	end         *keyEnd             // of the attempt, under HoldKeys
	earlier     []headers.Attempt   // calls of this delivery that failed and were repeated in place
	failure     *[1]headers.Attempt // room for the first failure of each record
}

// mostEarlier is more entries than the history ever has: the shortest has 27 bytes.
const mostEarlier = headers.MaxHistory / 24

// keepEarlier keeps a call that failed and is repeated in place. It keeps what a header may have of
// an error's text, and the newest calls, beside the first, at which the record first failed.
func (s *copySource) keepEarlier(a headers.Attempt, message string) {
	if len(s.earlier) > mostEarlier {
		s.earlier = slices.Delete(s.earlier, 1, 2)
	}
	a.Message = cut(message, headers.MaxHistoryMessage+utf8.UTFMax)
	s.earlier = append(s.earlier, a)
}

// onOversize maps Policy.OnOversize.
var onOversize = map[Disposition]forward.Oversize{DeadLetter: forward.Omit, Discard: forward.Drop, Stop: forward.Halt}

// initCopies configures the lane's copies.
func (l copyLane) initCopies() {
	l.copies.Init(forward.Config{
		Lane: l, Observer: l, Clients: l.c.copyClients, Context: l.abandon,
		Partition: l.partition, DLQ: l.siblings.DLQ, OnOversize: onOversize[l.policy.OnOversize],
	})
}

// forward sends a copy of the record to a sibling, and returns at once. The record is finished when
// the copy is acknowledged.
func (l copyLane) forward(from forward.Origin, seen *copySource, topic string, m *headers.Meta, now time.Time) {
	l.copies.Send(seen.Copy(from, topic, m, now))
}

// forwardMalformed sends a record of a retry topic to the dead-letter topic unchanged. The message
// gives its position on the retry topic: the original position may be broken, and the value can be
// read there if the letter lacks it.
func (l copyLane) forwardMalformed(f *feed, r *kgo.Record, err error) {
	err = fmt.Errorf("%s/%d/%d: %w", f.topic, l.partition, r.Offset, err)
	l.copies.Send(forward.NewCopy(f, r.Offset, kgo.Record{
		Topic: l.siblings.DLQ, Key: r.Key, Value: r.Value, Headers: headers.Malformed(r.Headers, err, time.Now()),
	}))
}

// route handles a failed record: it forwards a copy, discards the record, or halts the lane. It
// returns the outcome and the error's text for display. done is false if the record stays.
func (l copyLane) route(f *feed, seen *copySource, prev *headers.Meta, err error, r classify.Result) (outcome, message string, done bool) {
	now := time.Now()
	var meta headers.Meta
	l.failedMeta(&meta, seen, prev, err, r, now)
	var rested time.Duration
	if l.policy.MaxAge > 0 {
		rested = l.guard.Rested(retriedSince(&meta), now)
	}
	free := l.guard.Free(retriedSince(&meta), now)
	from := f.tier
	if seen.end != nil {
		from = seen.end.tier
	}
	d := l.policy.decide(l.siblings, from, &meta, now, rested, free, r)
	switch {
	case d.final && d.how == Stop:
		l.log.Error("siding: the lane halts on a record that may not be skipped",
			"feed", f.topic, "offset", seen.Offset, "class", r.Class, "error", meta.Message)
		l.halt(fmt.Sprintf("halted on offset %d of %s: %s", seen.Offset, f.topic, r.Class))
		return outcomeStopped, meta.Message, false
	case d.final && d.how == Discard:
		l.reportDiscard(&meta, d.reason, r.Verdict == classify.VerdictDiscard, now)
		l.countDiscarded(seen, meta, d.reason)
		l.discard(f, seen, &meta)
		return outcomeDiscarded, meta.Message, true
	case d.final:
		meta.Reason = d.reason
		if !l.mayRefuseLetters() {
			l.reportDead(&meta, d.reason, now)
		}
		l.forward(l.ending(f, seen, &meta), seen, l.siblings.DLQ, &meta, now)
		return outcomeDeadLettered, meta.Message, true
	}
	if meta.NotBefore = d.due; free {
		meta.Attempts = max(meta.Attempts-1, 1) // a copy without any is redriven
	}
	l.reportParked(seen, &meta, d.tier.Delay, now)
	if seen.end != nil {
		l.holdKey(seen, &meta, d)
		return outcomeRetried, meta.Message, true
	}
	l.forward(f, seen, d.tier.Topic, &meta, now)
	return outcomeRetried, meta.Message, true
}

// mayRefuseLetters reports whether a dead letter may become none, if it is too large: then a record
// counts as dead-lettered not before its letter is safe.
func (l copyLane) mayRefuseLetters() bool { return l.policy.OnOversize != DeadLetter }

// reportDead logs and counts a record that is dead-lettered.
func (l copyLane) reportDead(m *headers.Meta, reason headers.Reason, now time.Time) {
	l.c.telemetry.countRouted(l.topic, "dlq", m.Class, reason)
	l.reportFailed(&recordKind{event: eventDeadLettered, reason: string(reason)}, m, now)
}

// reportDiscard logs and counts a record that is discarded. Where the handler asked for that,
// they have no reason: a reason says why the policy tries a record no more.
func (l copyLane) reportDiscard(m *headers.Meta, reason headers.Reason, byHandler bool, now time.Time) {
	k := recordKind{event: eventDiscarded, by: "policy", reason: string(reason)}
	if byHandler {
		k.by, k.reason, reason = "handler", "", ""
	}
	l.c.telemetry.countRouted(l.topic, outcomeDiscarded, m.Class, reason)
	l.reportFailed(&k, m, now)
}

// reportParked logs and counts a failed record that will be tried again.
func (l copyLane) reportParked(seen *copySource, m *headers.Meta, tier time.Duration, now time.Time) {
	l.c.telemetry.countParked(l.topic, tier, m.Class)
	event := eventParked
	if seen.end != nil {
		event = eventHeld
	}
	l.reportFailed(&recordKind{event: event, tier: tier}, m, now)
}

// reportFailed logs and counts an event of a failed record of the lane.
func (l copyLane) reportFailed(k *recordKind, m *headers.Meta, now time.Time) {
	k.topic, k.class = l.topic, m.Class
	l.c.recordLog.addAt(now, k, &recordExample{
		partition: l.partition, offset: m.Original.Offset, attempts: m.Attempts, error: m.Message,
	})
}

// failedMeta fills an empty meta with that of a failed record's copy.
func (l copyLane) failedMeta(m *headers.Meta, seen *copySource, prev *headers.Meta, err error, r classify.Result, now time.Time) {
	l.meta(m, seen, prev)
	if m.History == nil {
		if seen.failure == nil {
			seen.failure = new([1]headers.Attempt)
		}
		m.History = seen.failure[:0]
	}
	m.Fail(r, textOf(err, r.Message, l.c.cfg.ErrorText), now, seen.earlier...)
	m.TraceParent = seen.traceParent
}

// meta fills an empty one with that of a record's next copy before its failure is added: origin,
// earlier failures, writer.
func (l copyLane) meta(m *headers.Meta, seen *copySource, prev *headers.Meta) {
	if prev != nil {
		*m = *prev
	} else {
		if seen.redriven != nil {
			*m = *seen.redriven
		}
		m.Original = headers.Position{
			Topic: l.topic, TopicID: l.topicID, Partition: l.partition, Offset: seen.Offset, Timestamp: seen.timestamp,
		}
	}
	m.Group = l.c.cfg.Group
	m.Reason, m.NotBefore, m.Held = "", time.Time{}, false
	m.Hops++
	m.Version, m.Environment, m.Host = l.c.cfg.Version, l.c.cfg.Environment, l.c.host
}

// halt stops the lane at a record whose disposition is Stop.
func (l copyLane) halt(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.haltLocked(why)
}

func (l copyLane) haltLocked(why string) {
	if l.state == laneRunning {
		l.setState(laneHalted, why)
	}
}
