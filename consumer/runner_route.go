package consumer

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer/internal/forward"
	"github.com/sidingkafka/siding/headers"
)

// route decides what happens to a record that failed, and does it.
func (r *runner) route(a *attempt, meta *headers.Meta, err error, result classify.Result) bool {
	r.source.traceParent = r.traceParent()
	r.source.end = r.keyEnd()
	outcome, message, done := copyLane{r.lane}.route(r.feed, &r.source, meta, err, result)
	r.attemptTelemetry.failed(r.c.telemetry, a, outcome, message, result)
	if e := r.source.end; e != nil && e.waits != nil {
		r.hold(a, e.waits)
	}
	return done
}

// keyEnd is how the attempt ends, under HoldKeys; nil if it holds no key.
func (r *runner) keyEnd() *keyEnd {
	u := r.unit
	if r.lane.held == nil || u.tier != nil || r.source.Key == nil {
		return nil
	}
	e := &keyEnd{feed: r.feed, key: hashOf(r.source.Key), offset: r.source.Offset}
	if u.odd == nil {
		u.odd = &oddUnit{}
	}
	if u.odd.end = e; u.odd.again != nil {
		e.tier = u.odd.again.tier
	}
	return e
}

// hold keeps what the next attempt of a record needs that waits in its lane.
func (r *runner) hold(a *attempt, h *heldRecord) {
	at := r.source.Offset
	rec := recordAt(headers.Position{Topic: r.lane.topic, Partition: r.lane.partition, Offset: at, Timestamp: r.source.timestamp},
		r.source.Key, r.source.Value, r.source.Headers)
	rec.Context = a.rec().Context
	if h.item = r.unit.item; h.item == nil {
		h.item = &item{size: forward.RecordSize(rec), hash: r.source.end.key}
	}
	h.item.rec = rec
}

// readAgain prepares another attempt of a head.
func (r *runner) readAgain(h *heldRecord, rec *kgo.Record) *headers.Meta {
	if h.meta != nil {
		r.source.redriven, r.source.earlier = nil, r.source.earlier[:0]
		r.read = rec.Headers
		r.keep(rec, rec.Offset)
		return h.meta
	}
	// An earlier owner held it: the history begins anew.
	r.readSource(rec)
	var m headers.Meta
	copyLane{r.lane}.meta(&m, &r.source, nil)
	m.Attempts, m.NotBefore, m.FirstFailedAt, m.Hops = h.wait.Attempts, h.wait.Due, h.wait.Failed, m.Hops-1
	return &m
}

// follow dead-letters a record that waited behind one which is dead-lettered.
func (r *runner) follow(e *keyEnd) {
	r.readSource(r.unit.item.rec)
	l, now := copyLane{r.lane}, time.Now()
	var m headers.Meta
	l.meta(&m, &r.source, nil)
	m.Class, m.Fingerprint, m.Reason = e.follow.Class, e.follow.Fingerprint, headers.ReasonHeld
	m.Message = fmt.Sprintf("waited behind %s/%d/%d, which is dead-lettered", r.lane.topic, r.lane.partition, e.offset)
	if m.FailedAt = now; m.FirstFailedAt.IsZero() {
		m.FirstFailedAt = now
	}
	if !l.mayRefuseLetters() {
		l.reportDead(&m, m.Reason, now)
	}
	l.copies.Send(r.source.Copy(e, l.siblings.DLQ, &m, now))
}

// condemn ends a record that killed processes, without a run.
func (r *runner) condemn() {
	u := r.unit
	var rec *kgo.Record
	var meta *headers.Meta
	switch {
	case u.tier != nil:
		var ok bool
		if rec, meta, ok = r.unpack(u.tier.parked.Unpack(u.item.parked)); !ok {
			return
		}
	case u.item != nil:
		rec = u.item.rec
	default:
		rec, u.ran = u.recs[0], 1
	}
	switch {
	case u.parts().again != nil:
		meta = r.readAgain(u.odd.again, rec)
	case u.tier == nil:
		r.readSource(rec)
	}
	r.keep(rec, u.condemned.Offset)
	r.source.end = r.keyEnd()
	if _, _, done := (copyLane{r.lane}).route(r.feed, &r.source, meta, u.condemned, u.condemned.classified()); !done {
		u.ran = 0 // the policy stops the lane here
	}
}
