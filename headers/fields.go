package headers

import (
	"encoding/base64"
	"time"
	"unicode/utf8"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/internal/reserved"
)

// Each method of this file reads one header. A missing or invalid header gives the zero value; an
// invalid one also fails the parser.

func (p *parser) number(k reserved.Key, lo, hi int64) int64 {
	if !p.has(k) {
		return 0
	}
	n, err := reserved.Int(p.Value[k], lo, hi)
	if err != nil {
		p.fail(k, err)
	}
	return n
}

func (p *parser) time(k reserved.Key) time.Time {
	if !p.has(k) {
		return time.Time{}
	}
	if p.InMeta.Has(k) && string(p.Value[k]) == noTime {
		return time.Time{}
	}
	ms, err := reserved.Int(p.Value[k], 0, reserved.MaxMillis)
	if err != nil {
		p.fail(k, err)
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

func (p *parser) flag(k reserved.Key) bool {
	if !p.has(k) {
		return false
	}
	if string(p.Value[k]) != "true" {
		p.fail(k, ErrSyntax)
		return false
	}
	return true
}

func (p *parser) topic(k reserved.Key) string {
	s := p.text[k]
	if !p.has(k) {
		return ""
	}
	if err := checkTopic(s); err != nil {
		p.fail(k, err)
		return ""
	}
	return s
}

func (p *parser) topicID(k reserved.Key) (id [16]byte) {
	if !p.has(k) {
		return id
	}
	v := p.Value[k]
	if len(v) != base64.RawURLEncoding.EncodedLen(len(id)) {
		p.fail(k, ErrSyntax)
		return id
	}
	if _, err := base64.RawURLEncoding.Strict().Decode(id[:], v); err != nil {
		p.fail(k, ErrSyntax)
		return [16]byte{}
	}
	return id
}

// name reads text that identifies something and so cannot be repaired.
func (p *parser) name(k reserved.Key) string {
	s := p.text[k]
	if p.has(k) && (s == "" || !utf8.ValidString(s)) {
		p.fail(k, ErrSyntax)
		return ""
	}
	return s
}

// display reads text that is only displayed.
func (p *parser) display(k reserved.Key) string {
	s := p.text[k]
	limit, _ := textLimit(k)
	if len(s) < limit && utf8.ValidString(s) {
		return s
	}
	return string(appendText(nil, s, limit))
}

func (p *parser) class(k reserved.Key) string {
	s := p.text[k]
	if p.has(k) && !classify.ValidClass(s) {
		p.fail(k, ErrSyntax)
		return ""
	}
	return s
}

func (p *parser) fingerprint(k reserved.Key) string {
	s := p.text[k]
	if p.has(k) && !validFingerprint(s) {
		p.fail(k, ErrSyntax)
		return ""
	}
	return s
}

func (p *parser) history(k reserved.Key) []Attempt {
	if !p.has(k) {
		return nil
	}
	attempts, err := parseHistory(p.text[k])
	if err != nil {
		p.fail(k, err)
		return nil
	}
	return attempts
}

func (p *parser) redrive() (r Redrive) {
	if p.any(reserved.RedriveID, reserved.RedriveCount, reserved.RedriveFrom, reserved.RedriveOriginal, reserved.RedriveAt, reserved.RedriveMaxAttempts) {
		r = p.redriven()
		p.redriveNotes(&r)
	}
	return r
}

// redriven reads the headers that every redriven record has.
func (p *parser) redriven() (r Redrive) {
	p.require(reserved.RedriveID, reserved.RedriveCount, reserved.RedriveFrom)
	r.ID = p.name(reserved.RedriveID)
	r.Count = int(p.number(reserved.RedriveCount, 0, MaxAttempts))
	r.From = p.position(reserved.RedriveFrom)
	return r
}

// redriveNotes reads the headers that count only beside those.
func (p *parser) redriveNotes(r *Redrive) {
	r.Original = p.position(reserved.RedriveOriginal)
	r.At = p.time(reserved.RedriveAt)
	r.MaxAttempts = int(p.number(reserved.RedriveMaxAttempts, 1, MaxAttempts))
}

func (p *parser) position(k reserved.Key) Position {
	if !p.has(k) {
		return Position{}
	}
	at, err := ParsePosition(p.text[k])
	if err != nil {
		p.fail(k, err)
	}
	return at
}
