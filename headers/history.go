package headers

import (
	"strconv"
	"strings"
	"time"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/internal/reserved"
)

// historyFormat is the format of the history that this version writes, with which its text begins.
// Format 1 has no mark: it begins with an entry, in which a colon follows the number.
const historyFormat = "2"

const maxVerdict = 16

// writtenHistory returns the newest part of m.History that fits its header.
func (m *Meta) writtenHistory() []Attempt {
	size := len(historyFormat)
	for i := range m.History {
		size += m.History[i].most()
	}
	if size <= MaxHistory { // nearly always
		return m.History
	}
	size = len(historyFormat)
	for i := len(m.History) - 1; i >= 0; i-- {
		if size += m.History[i].size(); size > MaxHistory {
			return m.History[i+1:]
		}
	}
	return m.History
}

// most is an upper bound of the entry's size with its comma.
func (a *Attempt) most() int {
	return 1 + 7 + 1 + 7 + 1 + max(len(a.Class), len(classify.ClassUnclassified)) + 1 + 15 + 1 + maxVerdict + 1 +
		3*min(len(a.Message), MaxHistoryMessage)
}

// size is the entry's size with its comma.
func (a *Attempt) size() int {
	var b [640]byte
	return len(a.append(b[:0]))
}

// append appends the entry with its comma.
func (a *Attempt) append(b []byte) []byte {
	b = append(b, ',')
	b = strconv.AppendInt(b, int64(clamp(a.Number)), 10)
	if a.Run > 0 {
		b = append(b, '.')
		b = strconv.AppendInt(b, int64(clamp(a.Run)), 10)
	}
	b = append(b, ':')
	if a.Class == "" {
		b = append(b, classify.ClassUnclassified...)
	} else {
		b = append(b, classify.CleanClass(a.Class)...)
	}
	b = append(b, ':')
	b = strconv.AppendInt(b, millis(a.At), 10)
	b = append(b, ':')
	if validVerdict(a.Verdict) {
		b = append(b, a.Verdict...)
	}
	b = append(b, ':')
	return appendEscaped(b, a.Message)
}

// history appends the field of a history.
func (e *encoder) history(attempts []Attempt) {
	if len(attempts) == 0 {
		return
	}
	e.buf = reserved.BeginField(e.buf, reserved.History)
	e.buf = append(e.buf, historyFormat...)
	for i := range attempts {
		e.buf = attempts[i].append(e.buf)
	}
	e.buf = append(e.buf, ';')
}

// mostHistory is an upper bound of the field's size.
func mostHistory(attempts []Attempt) int {
	size := len("history=;") + len(historyFormat)
	for i := range attempts {
		size += attempts[i].most()
	}
	return size
}

// parseHistory reads both formats: "2,attempt.run:class:unixms:verdict:message,…" and
// "attempt:class:unixms,…". Most texts of the result are parts of s.
func parseHistory(s string) ([]Attempt, error) {
	s, second := strings.CutPrefix(s, historyFormat+",")
	const shortest = len("1:a:0,")
	attempts := make([]Attempt, 0, min(strings.Count(s, ","), len(s)/shortest)+1)
	for more := true; more; {
		var entry string
		entry, s, more = strings.Cut(s, ",")
		a, err := parseAttempt(entry, second)
		if err != nil {
			return nil, err
		}
		attempts = append(attempts, a)
	}
	return attempts, nil
}

func parseAttempt(entry string, second bool) (a Attempt, err error) {
	number, rest, ok := strings.Cut(entry, ":")
	class, at, ok2 := strings.Cut(rest, ":")
	if !ok || !ok2 || !classify.ValidClass(class) {
		return a, ErrSyntax
	}
	a.Class = class
	if second {
		var verdict, message, run string
		at, rest, ok = strings.Cut(at, ":")
		verdict, message, ok2 = strings.Cut(rest, ":")
		if !ok || !ok2 || verdict != "" && !validVerdict(verdict) {
			return a, ErrSyntax
		}
		a.Verdict, a.Message = verdict, unescaped(message)
		if number, run, ok = strings.Cut(number, "."); ok {
			n, err := reserved.Int(run, 1, MaxAttempts)
			if err != nil {
				return a, err
			}
			a.Run = int(n)
		}
	}
	n, err := reserved.Int(number, 0, MaxAttempts)
	if err != nil {
		return a, err
	}
	ms, err := reserved.Int(at, 0, reserved.MaxMillis)
	if err != nil {
		return a, err
	}
	a.Number, a.At = int(n), time.UnixMilli(ms)
	return a, nil
}

// validVerdict reports whether s is a word that a version may write, so that a reader accepts those
// of a later version too.
func validVerdict(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && c != '-' {
			return false
		}
	}
	return s != "" && len(s) <= maxVerdict
}

// appendEscaped appends the first MaxHistoryMessage bytes of s as valid UTF-8, in the form of a
// field, and without commas.
func appendEscaped(b []byte, s string) []byte {
	s = shown(s)
	for i := range len(s) {
		if s[i] == ',' {
			b = reserved.AppendPercent(b, ',')
		} else {
			b = reserved.AppendEscaped(b, s[i])
		}
	}
	return b
}

// unescaped is the inverse of appendEscaped.
func unescaped(s string) string {
	if strings.Contains(s, "%") {
		var text [3 * MaxHistoryMessage]byte
		s = string(reserved.AppendUnescaped(text[:0], s))
	}
	return shown(s)
}

// shown returns at most MaxHistoryMessage bytes of s as valid UTF-8.
func shown(s string) string { return valid(s, MaxHistoryMessage) }
