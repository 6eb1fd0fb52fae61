package consumer

import (
	"fmt"
	"time"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/headers"
)

// route handles a failed record: it forwards a copy, discards the record, or halts the lane. It
// returns the outcome and the error's text for display. done is false if the record stays.
func (l copyLane) route(f *feed, seen *copySource, prev *headers.Meta, err error, r classify.Result) (outcome, message string, done bool) {
	now := time.Now()
	meta := l.failedMeta(seen, prev, err, r, now)
	var rested time.Duration
	if l.policy.MaxAge > 0 {
		rested = l.guard.Rested(retriedSince(&meta), now)
	}
	free := l.guard.Free(retriedSince(&meta), now)
	d := l.policy.decide(l.siblings, f.tier, &meta, now, rested, free, r)
	switch {
	case d.final && d.how == Stop:
		l.log.Error("siding: the lane halts on a record that may not be skipped",
			"feed", f.topic, "offset", seen.Offset, "class", r.Class, "error", meta.Message)
		l.halt(fmt.Sprintf("halted on offset %d of %s: %s", seen.Offset, f.topic, r.Class))
		return outcomeStopped, meta.Message, false
	case d.final && d.how == Discard:
		l.reportDiscard(&meta, d.reason, r.Verdict == classify.VerdictDiscard, now)
		l.countDiscarded(seen, meta, d.reason)
		l.discard(f, seen.Offset, &meta)
		return outcomeDiscarded, meta.Message, true
	case d.final:
		meta.Reason = d.reason
		if !l.mayRefuseLetters() {
			l.reportDead(&meta, d.reason, now)
		}
		l.forward(f, seen, l.siblings.DLQ, &meta, now)
		return outcomeDeadLettered, meta.Message, true
	}
	if meta.NotBefore = d.due; free {
		meta.Attempts = max(meta.Attempts-1, 1) // a copy without any is redriven
	}
	l.reportParked(&meta, d.tier.Delay, now)
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
func (l copyLane) reportParked(m *headers.Meta, tier time.Duration, now time.Time) {
	l.c.telemetry.countParked(l.topic, tier, m.Class)
	l.reportFailed(&recordKind{event: eventParked, tier: tier}, m, now)
}

// reportFailed logs and counts an event of a failed record of the lane.
func (l copyLane) reportFailed(k *recordKind, m *headers.Meta, now time.Time) {
	k.topic, k.class = l.topic, m.Class
	l.c.recordLog.addAt(now, k, &recordExample{
		partition: l.partition, offset: m.Original.Offset, attempts: m.Attempts, error: m.Message,
	})
}

// failedMeta is the meta of a failed record's copy.
func (l copyLane) failedMeta(seen *copySource, prev *headers.Meta, err error, r classify.Result, now time.Time) headers.Meta {
	m := l.meta(seen, prev)
	m.Fail(r, textOf(err, r.Message, l.c.cfg.ErrorText), now, seen.earlier...)
	m.TraceParent = seen.traceParent
	return m
}

// meta is the meta of a record's next copy before its failure is added: origin, earlier failures,
// writer.
func (l copyLane) meta(seen *copySource, prev *headers.Meta) (m headers.Meta) {
	if prev != nil {
		m = *prev
	} else {
		if seen.redriven != nil {
			m = *seen.redriven
		}
		m.Original = headers.Position{
			Topic: l.topic, TopicID: l.topicID, Partition: l.partition, Offset: seen.Offset, Timestamp: seen.timestamp,
		}
	}
	m.Group = l.c.cfg.Group
	m.Reason, m.NotBefore, m.Held = "", time.Time{}, false
	m.Hops++
	m.Version, m.Environment, m.Host = l.c.cfg.Version, l.c.cfg.Environment, l.c.host
	return m
}
