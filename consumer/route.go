package consumer

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/retrytopics"
)

// decision is what becomes of a record that failed.
type decision struct {
	tier   retrytopics.Tier // where it waits, unless it goes to rest
	due    time.Time
	final  bool // it will not be tried again
	how    Disposition
	reason headers.Reason
}

// decide is the policy as a function. attempts counts the deliveries of the record, the failed one included; from is the
// tier that it failed on, by its topic and delay, or zero.
func (p *Policy) decide(s retrytopics.Siblings, from retrytopics.Tier, attempts int, firstFailed, now time.Time, r classify.Result) decision {
	switch {
	case r.Verdict == classify.VerdictDiscard:
		return decision{final: true, how: Discard, reason: headers.ReasonTerminal}
	case r.Verdict != classify.VerdictRetry:
		return decision{final: true, how: p.OnTerminal, reason: terminalReason(r)}
	case p.MaxAge > 0 && now.Sub(firstFailed) >= p.MaxAge:
		return decision{final: true, how: p.OnExhausted, reason: headers.ReasonExpired}
	case attempts >= p.MaxAttempts || len(s.Tiers) == 0:
		return decision{final: true, how: p.OnExhausted, reason: headers.ReasonExhausted}
	}
	asked := p.asked(r)
	tier := next(s, from, asked)
	wait := max(tier.Delay, asked)
	return decision{tier: tier, due: wholeMillis(now.Add(wait + spread(p.Jitter, wait)))}
}

// asked is the least wait that a failure asks for, as far as the policy lets it.
func (p *Policy) asked(r classify.Result) time.Duration {
	return min(r.RetryAfter, max(p.MaxRetryAfter, 0))
}

// wholeMillis rounds a due time up to what its header can say: cut, it would be early.
func wholeMillis(t time.Time) time.Time {
	return time.UnixMilli(t.Add(time.Millisecond - 1).UnixMilli())
}

// next is the tier that a record goes to when it failed on from; that is zero for the source. It is the
// first tier behind from that is at least atLeast long, or the last tier, from which a record goes to the
// last again; the zero Tier where there is none. A tier that is no longer configured stands for the tier
// of the same delay (its name changed with the group's), or leads to the first that is no shorter: the
// next wait is no shorter than the last one.
func next(s retrytopics.Siblings, from retrytopics.Tier, atLeast time.Duration) retrytopics.Tier {
	if len(s.Tiers) == 0 {
		return retrytopics.Tier{}
	}
	behind := slices.IndexFunc(s.Tiers, func(t retrytopics.Tier) bool { return t.Topic == from.Topic || t.Delay == from.Delay }) + 1
	if behind == 0 {
		atLeast = max(from.Delay, atLeast)
	}
	for _, t := range s.Tiers[behind:] {
		if t.Delay >= atLeast {
			return t
		}
	}
	return s.Tiers[len(s.Tiers)-1]
}

// spread is a random share of a wait, at most jitter of it, in whole milliseconds.
func spread(jitter float64, wait time.Duration) time.Duration {
	most := int64(jitter * float64(wait.Milliseconds()))
	if most <= 0 {
		return 0
	}
	return time.Duration(rand.Int64N(most+1)) * time.Millisecond
}

// terminalReason is the most specific reason that a terminal failure tells.
func terminalReason(r classify.Result) headers.Reason {
	switch {
	case r.Class == classUnroutable:
		return headers.ReasonUnroutable
	case r.Kind == classify.KindPanic:
		return headers.ReasonPanic
	case r.Kind == classify.KindUnsupportedVersion:
		return headers.ReasonUnsupportedVersion
	case r.Kind == classify.KindDecode:
		return headers.ReasonDecode
	}
	return headers.ReasonTerminal
}

// route sees to a record that failed: it forwards a copy, discards it, or halts the lane on it. It returns what it did and the
// error's text as it may be shown; done is false where the record stays.
func (l *lane) route(f *feed, seen *copySource, prev *headers.Meta, err error, r classify.Result) (outcome, message string, done bool) {
	now := time.Now()
	meta := l.failedMeta(seen, prev, err, r, now)
	d := l.policy.decide(l.siblings, f.tier(), meta.Attempts, meta.FirstFailedAt, now, r)
	switch {
	case d.final && d.how == Stop:
		l.log.Error("siding: the lane halts on a record that may not be skipped",
			"feed", f.topic, "offset", seen.offset, "class", r.Class, "error", meta.Message)
		l.halt("halted on offset " + itoa(seen.offset) + " of " + f.topic + ": " + r.Class)
		return outcomeStopped, meta.Message, false
	case d.final && d.how == Discard:
		l.logDiscarded(&meta, d.reason)
		l.c.countRouted(l.topic, outcomeDiscarded, r.Class, d.reason)
		l.countDiscarded(seen, meta, d.reason)
		l.discard(f, seen.offset, &meta)
		return outcomeDiscarded, meta.Message, true
	case d.final:
		meta.Reason = d.reason
		l.logDeadLettered(&meta, d.reason)
		l.c.countRouted(l.topic, "dlq", r.Class, d.reason)
		l.forward(f, seen, l.siblings.DLQ, &meta, now)
		return outcomeDeadLettered, meta.Message, true
	}
	meta.NotBefore = d.due
	l.c.countParked(l.topic, d.tier.Delay, r.Class)
	l.forward(f, seen, d.tier.Topic, &meta, now)
	return outcomeRetried, meta.Message, true
}

// logEvery bounds what a storm of failures writes to the log: one line a topic, class and reason in this time, with the
// number of records that it stands for. The debug level has a line for each.
const logEvery = 10 * time.Second

// finalLogLine is the level and the attributes of the line about a record that will not be tried again.
func (l *lane) finalLogLine(m *headers.Meta, what string, reason headers.Reason) (slog.Level, []any) {
	level, times := slog.LevelDebug, 1
	var room [128]byte
	key := append(append(append(append(room[:0], what...), l.topic...), reason...), m.Class...)
	if n, due := l.c.throttle.due(key, logEvery); due {
		level, times = slog.LevelWarn, n
	} else if !l.log.Enabled(context.Background(), level) {
		return level, nil
	}
	return level, []any{
		"offset", m.Original.Offset, "attempts", m.Attempts, "reason", string(reason), "class", m.Class, "error", m.Message, "records", times,
	}
}

// logDeadLettered and logDiscarded log that a record will not be tried again, and what was done with it.
func (l *lane) logDeadLettered(m *headers.Meta, reason headers.Reason) {
	level, about := l.finalLogLine(m, "dead-lettered", reason)
	l.log.Log(context.Background(), level, "siding: record dead-lettered", about...)
}

func (l *lane) logDiscarded(m *headers.Meta, reason headers.Reason) {
	level, about := l.finalLogLine(m, "discarded", reason)
	l.log.Log(context.Background(), level, "siding: record discarded", about...)
}

// failedMeta is what the copy of a record will say, after a failure.
func (l *lane) failedMeta(seen *copySource, prev *headers.Meta, err error, r classify.Result, now time.Time) headers.Meta {
	m := l.meta(seen, prev)
	m.Fail(r, l.c.errorText(err, r.Message), now)
	m.TraceParent = seen.traceParent
	return m
}

// meta is what the next copy of a record says before anything is added: its origin, what earlier copies said, who wrote.
func (l *lane) meta(seen *copySource, prev *headers.Meta) (m headers.Meta) {
	if prev != nil {
		m = *prev
	} else {
		m.Original = headers.Position{
			Topic: l.topic, TopicID: l.topicID, Partition: l.partition, Offset: seen.offset, Timestamp: seen.timestamp,
		}
		m.Redrive = seen.redrive
	}
	m.Group = l.c.cfg.Group
	m.Reason, m.NotBefore, m.Held = "", time.Time{}, false
	m.Hops++
	m.Version, m.Environment, m.Host = l.c.cfg.Version, l.c.cfg.Environment, l.c.host
	return m
}

// finish notes a record as done that needed no copy.
func (l *lane) finish(f *feed, offset int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != laneGone {
		f.tracker.finish(offset)
	}
}

// tier is the feed's tier; zero for the source.
func (f *feed) tier() retrytopics.Tier {
	if f.isSource() {
		return retrytopics.Tier{}
	}
	return retrytopics.Tier{Delay: f.delay, Topic: f.topic}
}

// offerTier takes what a poll brought of a retry partition: records of other groups are passed over, the others are parked. It
// reports whether the fetch should pause: where what comes is overdue already and there is no room, it can as well wait on the
// broker.
func (f *feed) offerTier(id [16]byte, recs []*kgo.Record) (pause bool) {
	foreign, pause := f.admitAll(id, recs)
	if foreign > 0 {
		f.lane.c.warnShared(f.topic)
	}
	return pause
}

func (f *feed) admitAll(id [16]byte, recs []*kgo.Record) (foreign int, pause bool) {
	l := f.lane
	now := time.Now()
	refused := false
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state >= laneDraining || f.retired.Load() {
		return 0, false
	}
	f.topicID = id
	f.markRead(f.tracker.next, now)
	for _, r := range recs {
		if r.Attrs.IsControl() { // the end of a transaction, see withoutMarkers
			f.tracker.skip(r.Offset + 1)
			f.epoch = r.LeaderEpoch
			continue
		}
		if !f.tracker.deliver(r.Offset) {
			continue
		}
		f.epoch = r.LeaderEpoch
		// One without a group is broken, not another group's. Whatever else is broken is for the group that it names.
		if group, _, _ := headers.Peek(r.Headers); len(group) > 0 && !l.c.isOurs(group) {
			f.tracker.finish(r.Offset)
			foreign++
			continue
		}
		due := f.dueOf(r, now, now)
		refused = !f.admit(r, due) && due <= now.UnixMilli()
	}
	f.promote()
	if refused && !f.full.Load() {
		f.full.Store(true)
		l.c.tierBudget.pausedBy(f)
		return foreign, true
	}
	return foreign, false
}

// unpack makes the record of a tier what the handler sees: as it was first read, with what siding knows of it apart. It
// reports false where the record is dealt with already: broken, or not due yet.
func (r *runner) unpack(it *item) (rec *kgo.Record, meta *headers.Meta, ok bool) {
	l, f, physical := r.lane, r.feed, it.rec
	m, err := headers.Parse(physical.Headers)
	now := time.Now()
	if err == nil {
		err = m.CheckRetry(later(physical.Timestamp, now), f.longestWait())
	}
	if err != nil {
		l.log.Error("siding: record on a retry topic has broken headers, dead-lettered as found",
			"retry_topic", f.topic, "offset", physical.Offset, "error", err)
		l.c.countRouted(l.topic, "dlq", headers.ClassMalformed, headers.ReasonMalformed)
		l.forwardMalformed(f, physical, err)
		return nil, nil, false
	}
	user := headers.Strip(physical.Headers)
	if now.UnixMilli() < m.NotBefore.UnixMilli() {
		if f.repark(physical, now) {
			return nil, nil, false
		}
		seen := copySource{key: physical.Key, value: physical.Value, headers: user, timestamp: m.Original.Timestamp, offset: physical.Offset}
		again := l.meta(&seen, &m)
		again.NotBefore = m.NotBefore
		l.forward(f, &seen, f.requeueTopic(&again), &again, now)
		seen.release()
		return nil, nil, false
	}
	return &kgo.Record{
		Key: physical.Key, Value: physical.Value, Headers: user, Timestamp: m.Original.Timestamp, Topic: m.Original.Topic,
		Partition: m.Original.Partition, Offset: m.Original.Offset, LeaderEpoch: -1, ProducerID: -1, ProducerEpoch: -1, Context: physical.Context,
	}, &m, true
}

// cleanSource takes the reserved headers off a source record, on which they steer nothing, and returns the redrive ones
// if they count: if they name this source's own DLQ. Of where the record was first read they are believed what can be: that
// it was before, in this partition, to which redrive brings a record back. Else a record could take the idempotency key of
// one that is still to come. That it takes the key of one that came before can't be told from headers.
// See DESIGN.md, "Idempotency keys".
func (c *Consumer) cleanSource(l *lane, rec *kgo.Record) headers.Redrive {
	clean := headers.Strip(rec.Headers)
	if len(clean) == len(rec.Headers) {
		return headers.Redrive{}
	}
	redrive, _ := headers.SourceRedrive(rec.Headers, l.siblings.DLQ)
	rec.Headers = clean
	if o := redrive.Original; o.Topic != l.topic || o.Partition != l.partition || o.Offset >= rec.Offset {
		redrive.Original = headers.Position{}
	}
	return redrive
}

// warnShared says, once a topic, that another group's failures are in it.
func (c *Consumer) warnShared(topic string) {
	c.throttle.once("sharing "+topic, 24*time.Hour, func() {
		c.log.Info("siding: another group shares this retry topic; its records are passed over. Put {group} into Config.Naming to keep groups apart", "retry_topic", topic)
	})
}
