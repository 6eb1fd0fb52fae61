package headers

import (
	"encoding/base64"
	"math"
	"time"
	"unicode/utf8"

	"github.com/sidingkafka/siding/classify"
)

// Each method of this file reads one header. A missing or invalid header gives the zero value; an
// invalid one also fails the parser.

func (p *parser) number(k key, lo, hi int64) int64 {
	if !p.has(k) {
		return 0
	}
	n, err := parseInt(p.value[k], lo, hi)
	if err != nil {
		p.fail(k, err)
	}
	return n
}

func (p *parser) time(k key) time.Time {
	if !p.has(k) {
		return time.Time{}
	}
	ms, err := parseInt(p.value[k], 0, maxMillis)
	if err != nil {
		p.fail(k, err)
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

func (p *parser) flag(k key) bool {
	if !p.has(k) {
		return false
	}
	if string(p.value[k]) != "true" {
		p.fail(k, ErrSyntax)
		return false
	}
	return true
}

func (p *parser) topic(k key) string {
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

func (p *parser) topicID(k key) (id [16]byte) {
	if !p.has(k) {
		return id
	}
	v := p.value[k]
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
func (p *parser) name(k key) string {
	s := p.text[k]
	if p.has(k) && (s == "" || !utf8.ValidString(s)) {
		p.fail(k, ErrSyntax)
		return ""
	}
	return s
}

// note reads text that is only displayed.
func (p *parser) note(k key) string {
	s := p.text[k]
	limit, _ := textLimit(k)
	if len(s) < limit && utf8.ValidString(s) {
		return s
	}
	return string(appendText(nil, s, limit))
}

func (p *parser) class(k key) string {
	s := p.text[k]
	if p.has(k) && !classify.ValidClass(s) {
		p.fail(k, ErrSyntax)
		return ""
	}
	return s
}

const fingerprintLen = 16

func (p *parser) fingerprint(k key) string {
	s := p.text[k]
	if p.has(k) && !validFingerprint(s) {
		p.fail(k, ErrSyntax)
		return ""
	}
	return s
}

func validFingerprint(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(s) == fingerprintLen
}

func (p *parser) history(k key) []Attempt {
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
	if !p.any(redriveID, redriveCount, redriveFrom, redriveOriginal) {
		return r
	}
	p.require(redriveID, redriveCount, redriveFrom)
	r.ID = p.name(redriveID)
	r.Count = int(p.number(redriveCount, 0, MaxAttempts))
	if p.has(redriveFrom) {
		from, err := ParsePosition(p.text[redriveFrom])
		if err != nil {
			p.fail(redriveFrom, err)
		}
		r.From = from
	}
	if p.has(redriveOriginal) {
		original, err := ParsePosition(p.text[redriveOriginal])
		if err != nil {
			p.fail(redriveOriginal, err)
		}
		r.Original = original
	}
	return r
}

// parseInt reads a decimal number between lo and hi: digits with at most one leading minus.
func parseInt[T string | []byte](s T, lo, hi int64) (int64, error) {
	digits, negative := s, false
	if len(s) > 0 && s[0] == '-' {
		digits, negative = s[1:], true
	}
	if len(digits) == 0 {
		return 0, ErrSyntax
	}
	var n uint64
	for i := range len(digits) {
		c := digits[i] - '0'
		if c > 9 {
			return 0, ErrSyntax
		}
		if n > (math.MaxUint64-9)/10 {
			return 0, ErrRange
		}
		n = n*10 + uint64(c)
	}
	switch {
	case negative && n > -math.MinInt64, !negative && n > math.MaxInt64:
		return 0, ErrRange
	case negative:
		n = -n // wraps to the two's complement, MinInt64 included
	}
	if v := int64(n); v >= lo && v <= hi {
		return v, nil
	}
	return 0, ErrRange
}
