package headers

import (
	"math"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
)

// Parse reads the reserved headers among h. It checks syntax and absolute bounds; CheckRetry checks
// whether the values are plausible on a topic. Headers without any reserved key give the zero Meta.
//
// The error is a *FieldError about the first invalid header: not in its format, out of bounds,
// duplicate, or missing. Some headers are valid only together: the topic, partition and offset of a
// position, with the attempts; and the three of redrive, without which dlq-redrive-original is
// invalid too. The Meta returned with an error has all that could be read, so that an operator sees
// the content of a malformed letter; of a duplicate it has the first value.
//
// Meta does not alias the headers' values. Parse allocates once for all text, and once more for a
// history.
func Parse(h []kgo.RecordHeader) (Meta, error) {
	var p parser
	p.collect(h)
	if p.seen == 0 {
		return Meta{}, nil
	}
	p.copyText()

	var m Meta
	m.Original = Position{
		Topic:     p.topic(originalTopic),
		TopicID:   p.topicID(originalTopicID),
		Partition: int32(p.number(originalPartition, 0, math.MaxInt32)),
		Offset:    p.number(originalOffset, 0, math.MaxInt64),
	}
	if p.has(originalTimestamp) {
		m.Original.Timestamp = time.UnixMilli(p.number(originalTimestamp, math.MinInt64, math.MaxInt64))
	}
	m.Group = p.name(group)
	m.Attempts = int(p.number(attempts, 0, MaxAttempts))
	m.Class = p.class(errorClass)
	m.Fingerprint = p.fingerprint(errorFingerprint)
	m.Message = p.note(errorMessage)
	m.Stack = p.note(errorStack)
	m.Reason = Reason(p.class(failureReason))
	m.FirstFailedAt = p.time(firstFailedAt)
	m.FailedAt = p.time(failedAt)
	m.NotBefore = p.time(notBefore)
	m.Held = p.flag(held)
	m.Hops = int(p.number(hops, 0, MaxAttempts))
	m.History = p.history(history)
	m.TraceParent = p.note(traceParent)
	m.Version = p.note(consumerVersion)
	m.Environment = p.note(environment)
	m.Host = p.note(host)
	m.Redrive = p.redrive()
	m.ValueOmitted = p.flag(valueOmitted)

	if p.any(originalTopic, originalPartition, originalOffset) {
		p.require(originalTopic, originalPartition, originalOffset, attempts)
	}
	if p.err != nil {
		return m, p.err // not a nil *FieldError in an error
	}
	return m, nil
}

// SourceRedrive reads the redrive headers of a record on a source topic. They count, and ok is
// true, only if all three occur exactly once, in their format, and name a position in dlqTopic,
// that source's own DLQ. Otherwise any producer could forge a redriven record. [Redrive].Original
// is set if its header occurs once and in its format; the caller has to check the position that it
// names.
func SourceRedrive(h []kgo.RecordHeader, dlqTopic string) (r Redrive, ok bool) {
	var p parser
	p.collect(h)
	if !p.any(redriveID, redriveCount, redriveFrom) {
		return Redrive{}, false
	}
	// Only these three headers have an effect here, so others may be invalid.
	p.err = nil
	if p.twice&(bit(redriveID)|bit(redriveCount)|bit(redriveFrom)) != 0 {
		return Redrive{}, false
	}
	if p.twice&bit(redriveOriginal) != 0 {
		p.seen &^= bit(redriveOriginal)
	}
	p.copyText()
	if _, err := ParsePosition(p.text[redriveOriginal]); err != nil {
		p.seen &^= bit(redriveOriginal) // the run's mark counts without it
	}
	p.err = nil
	r = p.redrive()
	if p.err != nil || r.From.Topic != dlqTopic {
		return Redrive{}, false
	}
	return r, true
}

// parser holds the reserved headers of one record, by key.
type parser struct {
	value [numKeys][]byte
	seen  uint32 // bits of keys
	twice uint32
	text  [lastText + 1]string // copies of the text values
	err   *FieldError
}

func bit(k key) uint32 { return 1 << k }

func (p *parser) has(k key) bool { return p.seen&bit(k) != 0 }

func (p *parser) any(keys ...key) bool {
	for _, k := range keys {
		if p.has(k) {
			return true
		}
	}
	return false
}

func (p *parser) require(keys ...key) {
	for _, k := range keys {
		if !p.has(k) {
			p.fail(k, ErrMissing)
		}
	}
}

// fail keeps the first error.
func (p *parser) fail(k key, err error) {
	if p.err == nil {
		v := p.value[k]
		p.err = &FieldError{Key: keyNames[k], Value: string(v[:min(len(v), 64)]), Err: err}
	}
}

func (p *parser) collect(h []kgo.RecordHeader) {
	for i := range h {
		k := keyOf(h[i].Key)
		if k == userKey {
			continue
		}
		if p.has(k) {
			p.twice |= bit(k)
			p.fail(k, ErrDuplicate)
			continue
		}
		p.seen |= bit(k)
		p.value[k] = h[i].Value
	}
}

// copyText copies the text values into one string: a parked Meta outlives its record, and a kept
// value would retain the whole fetch.
func (p *parser) copyText() {
	n := 0
	for k := firstText; k <= lastText; k++ {
		v := p.value[k]
		limit, exact := textLimit(k)
		if len(v) > limit {
			if exact {
				p.fail(k, ErrRange)
				v = nil
			} else {
				v = v[:limit]
			}
			p.value[k] = v
		}
		n += len(v)
	}
	var b strings.Builder
	b.Grow(n)
	for k := firstText; k <= lastText; k++ {
		b.Write(p.value[k])
	}
	for k, all := firstText, b.String(); k <= lastText; k++ {
		n := len(p.value[k])
		p.text[k], all = all[:n], all[n:]
	}
}

// textLimit returns the limit of a value, and whether a longer value is an error rather than cut.
func textLimit(k key) (limit int, exact bool) {
	switch k {
	case errorMessage:
		return MaxMessage, false
	case errorStack:
		return MaxStack, false
	case traceParent, consumerVersion, environment, host:
		return maxNote, false
	case originalTopic:
		return maxTopic, true
	case group:
		return maxGroup, true
	case errorClass, failureReason:
		return classify.MaxClass, true
	case errorFingerprint:
		return fingerprintLen, true
	case history:
		return MaxHistory, true
	case redriveID:
		return maxRedriveID, true
	default: // redriveFrom, redriveOriginal
		return maxTopic + 1 + 10 + 1 + 19, true
	}
}
