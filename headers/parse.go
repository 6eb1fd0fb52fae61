package headers

import (
	"errors"
	"math"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/internal/reserved"
)

// Parse reads the reserved headers among h. It checks syntax and absolute bounds; CheckRetry checks
// whether the values are plausible on a topic. Headers without any reserved key give the zero Meta.
//
// The error is a *FieldError about the first invalid value: not in its format, out of bounds,
// duplicate, or missing. Some are valid only together. One such set is the topic, partition and
// offset of a position with the attempts. The other is the run, its number and the letter of a
// redrive; without them its other fields are invalid too. The Meta returned with an error has all
// values that could be read, so that an operator sees the content of a malformed letter. Of a
// duplicate header it has the first value.
//
// Meta does not alias the headers' values. Parse allocates once for all text, and once more for a
// history.
func Parse(h []kgo.RecordHeader) (Meta, error) {
	var p parser
	p.read(h)
	if p.Present == 0 {
		return Meta{}, nil
	}
	p.copyText()

	var m Meta
	m.Original = Position{
		Topic:     p.topic(reserved.OriginalTopic),
		TopicID:   p.topicID(reserved.OriginalTopicID),
		Partition: int32(p.number(reserved.OriginalPartition, 0, math.MaxInt32)),
		Offset:    p.number(reserved.OriginalOffset, 0, math.MaxInt64),
	}
	if p.has(reserved.OriginalTimestamp) {
		m.Original.Timestamp = time.UnixMilli(p.number(reserved.OriginalTimestamp, math.MinInt64, math.MaxInt64))
	}
	m.Group = p.name(reserved.Group)
	m.Attempts = int(p.number(reserved.Attempts, 0, MaxAttempts))
	m.Class = p.class(reserved.ErrorClass)
	m.Fingerprint = p.fingerprint(reserved.ErrorFingerprint)
	m.Message = p.display(reserved.ErrorMessage)
	m.Stack = p.display(reserved.ErrorStack)
	m.Reason = Reason(p.class(reserved.FailureReason))
	m.FirstFailedAt = p.time(reserved.FirstFailedAt)
	m.FailedAt = p.time(reserved.FailedAt)
	m.NotBefore = p.time(reserved.NotBefore)
	m.Held = p.flag(reserved.Held)
	m.Hops = int(p.number(reserved.Hops, 0, MaxAttempts))
	m.History = p.history(reserved.History)
	m.TraceParent = p.display(reserved.TraceParent)
	m.Version = p.display(reserved.ConsumerVersion)
	m.Environment = p.display(reserved.Environment)
	m.Host = p.display(reserved.Host)
	m.Redrive = p.redrive()
	m.ValueOmitted = p.flag(reserved.ValueOmitted)
	m.Unknown = string(p.Unknown)
	if p.has(reserved.Meta) {
		// The last failure of a malformed letter is that of its headers.
		if !p.has(reserved.FirstFailedAt) && m.Reason != ReasonMalformed {
			m.FirstFailedAt = m.FailedAt
		}
		if !p.has(reserved.Hops) {
			m.Hops = m.Attempts
		}
	}

	if p.any(reserved.OriginalTopic, reserved.OriginalPartition, reserved.OriginalOffset) {
		p.require(reserved.OriginalTopic, reserved.OriginalPartition, reserved.OriginalOffset, reserved.Attempts)
	}
	if p.err != nil {
		return m, p.err // not a nil *FieldError in an error
	}
	return m, nil
}

// ParseSource reads what a redrive wrote to a record on a source topic: Redrive, and with it
// FirstFailedAt and History. dlqTopic is that source's dead-letter topic. ok is true only if the
// three headers of redrive occur once and in their format, and name a position in dlqTopic.
// Otherwise any producer could forge a redriven record. Beside headers that only copies on siblings
// have, of the original position, the attempts or the reason, ok is false too: a tool copied a
// letter with all its headers, and its redrive is over. Each of the other headers counts if it
// occurs once, in its format and, if it is a time, after the epoch; FirstFailedAt and History only
// if [Redrive].At counts, since a run writes none without it. The caller has to check whether
// Original and At of [Redrive] fit the record.
func ParseSource(h []kgo.RecordHeader, dlqTopic string) (m Meta, ok bool) {
	var p parser
	p.read(h)
	letter := p.any(reserved.OriginalTopic, reserved.OriginalPartition, reserved.OriginalOffset, reserved.Attempts, reserved.FailureReason)
	for k := reserved.User + 1; k < reserved.Count; k++ {
		if p.Twice.Has(k) {
			p.Present.Remove(k)
			p.Value[k] = nil
		}
	}
	if p.Twice.Has(reserved.Meta) {
		p.Present &^= p.InMeta
	}
	p.err = nil // of other headers, which have no effect here
	if !p.has(reserved.RedriveID) || letter {
		return Meta{}, false
	}
	p.copyText()
	p.err = nil
	if m.Redrive = p.redriven(); p.err != nil || m.Redrive.From.Topic != dlqTopic {
		return Meta{}, false
	}
	p.redriveNotes(&m.Redrive)
	m.Redrive.At = known(m.Redrive.At)
	if !m.Redrive.At.IsZero() {
		m.FirstFailedAt = known(p.time(reserved.FirstFailedAt))
		m.History = p.history(reserved.History)
	}
	return m, true
}

// known returns a time, or the zero time for the epoch: no run wrote a record then.
func known(t time.Time) time.Time {
	if t.UnixMilli() == 0 {
		return time.Time{}
	}
	return t
}

// parser holds the reserved headers of one record, by key.
type parser struct {
	reserved.Fields
	text [reserved.LastText + 1]string // copies of the text values
	err  *FieldError
}

func (p *parser) has(k reserved.Key) bool { return p.Present.Has(k) }

func (p *parser) any(keys ...reserved.Key) bool {
	for _, k := range keys {
		if p.has(k) {
			return true
		}
	}
	return false
}

func (p *parser) require(keys ...reserved.Key) {
	for _, k := range keys {
		if !p.has(k) {
			p.fail(k, ErrMissing)
		}
	}
}

// fail keeps the first error.
func (p *parser) fail(k reserved.Key, err error) {
	if p.err != nil {
		return
	}
	v := p.Value[k]
	e := &FieldError{Key: k.String(), Value: string(v[:min(len(v), 64)]), Err: err}
	if field := k.FieldName(); field != "" && p.has(reserved.Meta) && (p.InMeta.Has(k) || !p.has(k)) {
		e.Key = MetaFields
		if e.Value = field + "=" + e.Value; errors.Is(err, ErrMissing) {
			e.Value = field
		}
	}
	p.err = e
}

// read reads the headers, and fails if a key occurs twice.
func (p *parser) read(h []kgo.RecordHeader) {
	p.Read(h)
	if p.Repeated != reserved.User {
		p.fail(p.Repeated, ErrDuplicate)
	}
	if p.Broken {
		p.fail(reserved.Meta, ErrSyntax)
	}
	if len(p.Unknown) > maxUnknown {
		p.fail(reserved.Meta, ErrRange)
		p.Unknown = nil
	}
}

// copyText copies the text values into one string: a parked Meta outlives its record, and a kept
// value would retain the whole fetch.
func (p *parser) copyText() {
	n := 0
	for k := reserved.FirstText; k <= reserved.LastText; k++ {
		v := p.Value[k]
		if p.InMeta.Has(k) && k != reserved.History {
			v = reserved.Unescape(v)
			p.Value[k] = v
		}
		limit, exact := textLimit(k)
		if len(v) > limit {
			if exact {
				p.fail(k, ErrRange)
				v = nil
			} else {
				v = v[:limit]
			}
			p.Value[k] = v
		}
		n += len(v)
	}
	var b strings.Builder
	b.Grow(n)
	for k := reserved.FirstText; k <= reserved.LastText; k++ {
		b.Write(p.Value[k])
	}
	for k, all := reserved.FirstText, b.String(); k <= reserved.LastText; k++ {
		n := len(p.Value[k])
		p.text[k], all = all[:n], all[n:]
	}
}

// textLimit returns the limit of a value, and whether a longer value is an error rather than cut.
func textLimit(k reserved.Key) (limit int, exact bool) {
	switch k {
	case reserved.ErrorMessage:
		return MaxMessage, false
	case reserved.ErrorStack:
		return MaxStack, false
	case reserved.TraceParent, reserved.ConsumerVersion, reserved.Environment, reserved.Host:
		return maxNote, false
	case reserved.OriginalTopic:
		return maxTopic, true
	case reserved.Group:
		return reserved.MaxGroup, true
	case reserved.ErrorClass, reserved.FailureReason:
		return classify.MaxClass, true
	case reserved.ErrorFingerprint:
		return fingerprintLen, true
	case reserved.History:
		return MaxHistory, true
	case reserved.RedriveID:
		return maxRedriveID, true
	default: // reserved.RedriveFrom, reserved.RedriveOriginal
		return maxTopic + 1 + 10 + 1 + 19, true
	}
}
