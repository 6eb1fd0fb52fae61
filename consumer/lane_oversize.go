package consumer

import (
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/oversize"
)

// tooLarge decides about a copy that was refused for its size; the caller holds the lock.
// DESIGN.md, "Copies that are too large", has the steps.
func (l *lane) tooLarge(fw *forward, err error) copyResult {
	if !fw.alone {
		fw.alone = true // of several, any may be the one
		return l.sendAlone(fw, fw.shrunk)
	}
	letter := fw.rec.Topic == l.siblings.DLQ
	step, more := fw.shrunk.Next(fw.written, fw.rec.Value, letter)
	switch {
	case !more && !letter:
		fw.rec.Topic, fw.written = l.siblings.DLQ, oversize.Letter(fw.written)
		l.sendAlone(fw, oversize.Whole)
		return copyDiverted
	case (!more || step.Omits()) && l.policy.OnOversize != DeadLetter:
		return l.oversized(fw)
	case !more:
		// Nothing is left that could be given up. Whoever raises the topic's limit may raise it far enough for all of it.
		fw.shrunk = oversize.Whole
		return l.refuse(fw, fw.rec.Topic+": "+err.Error()+": the record's own key and headers are too large for it: raise its max.message.bytes", err)
	}
	return l.sendAlone(fw, step)
}

// sendAlone has the copy sent alone; the caller holds the lock and sends it afterwards.
func (l *lane) sendAlone(fw *forward, step oversize.Step) copyResult {
	fw.shrunk = step
	l.forwards.wait(fw, nil)
	return copyAlone
}

// oversized does what the policy says of a record that its dead-letter topic has no room for; the caller holds the lock.
func (l *lane) oversized(fw *forward) copyResult {
	if l.policy.OnOversize == Discard {
		return copyDiscarded // finished after it was told of
	}
	if l.state == laneRunning {
		l.setState(laneHalted, "halted on offset "+itoa(fw.offset)+" of "+fw.feed.topic+", which is too large for "+fw.rec.Topic+": raise its max.message.bytes")
	}
	l.finishCopy(fw, false)
	return copyStopped
}

// dropCopy finishes the record of a copy that is dropped. Its headers say whether a ledger is to be told first.
func (l *lane) dropCopy(fw *forward) {
	m, _ := headers.Parse(fw.written) // broken ones are what it was dead-lettered for
	note := l.discardNote(&m)
	l.mu.Lock()
	if l.state == laneGone {
		note = nil
	} else {
		l.finishCopy(fw, note == nil)
	}
	l.mu.Unlock()
	if note != nil {
		l.send(&forward{feed: fw.feed, offset: fw.offset, rec: *note, note: true})
	}
}

// reportCopy logs and counts what became of a copy, and tells the hooks.
func (l *lane) reportCopy(fw *forward, became copyResult) {
	if became == copyAlone {
		return
	}
	e := l.routed(fw, fw.written, fw.rec.Value)
	switch became {
	case copyDiverted:
		l.logDeadLettered(&e.Meta, headers.ReasonTooLarge)
		l.c.countRouted(l.topic, "dlq", e.Meta.Class, headers.ReasonTooLarge)
	case copyDiscarded:
		l.logDiscarded(&e.Meta, headers.ReasonTooLarge)
		l.c.countRouted(l.topic, outcomeDiscarded, e.Meta.Class, headers.ReasonTooLarge)
		e.Meta.Reason = headers.ReasonTooLarge
		l.reportDiscarded(e)
	case copyStopped:
		l.log.Error("siding: the lane halts on a record that is too large for its dead-letter topic; raise its max.message.bytes",
			"to", fw.rec.Topic, "from", fw.feed.topic, "offset", fw.offset, "class", e.Meta.Class, "bytes", fw.size)
	case copyOmitted:
		at := headers.Position{Topic: e.Record.Topic, Partition: e.Record.Partition, Offset: e.Record.Offset}
		l.c.countOmitted(l.topic)
		l.log.Error("siding: dead letter written without its value, which does not fit; raise the topic's max.message.bytes",
			"to", fw.rec.Topic, "from", fw.feed.topic, "offset", fw.offset, "value_at", at.String(), "bytes", len(fw.rec.Value))
	}
}
