package headers

import (
	"strconv"
	"strings"
	"time"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/internal/reserved"
)

// writtenHistory returns the newest part of m.History that fits its header.
func (m *Meta) writtenHistory() []Attempt {
	size := 0
	for i := range m.History {
		size += m.History[i].most()
	}
	if size <= MaxHistory { // nearly always
		return m.History
	}
	size = -1 // the first entry has no comma
	for i := len(m.History) - 1; i >= 0; i-- {
		if size += m.History[i].size(); size > MaxHistory {
			return m.History[i+1:]
		}
	}
	return m.History
}

// most is an upper bound of the entry's size with its comma.
func (a *Attempt) most() int {
	return 7 + 1 + max(len(a.Class), len(classify.ClassUnclassified)) + 1 + 15 + 1
}

// size is the entry's size with its comma.
func (a *Attempt) size() int {
	var b [192]byte
	return len(a.append(b[:0])) + 1
}

func (a *Attempt) append(b []byte) []byte {
	b = strconv.AppendInt(b, int64(clamp(a.Number)), 10)
	b = append(b, ':')
	if a.Class == "" {
		b = append(b, classify.ClassUnclassified...)
	} else {
		b = append(b, classify.CleanClass(a.Class)...)
	}
	b = append(b, ':')
	return strconv.AppendInt(b, millis(a.At), 10)
}

func (e *encoder) history(attempts []Attempt) {
	if len(attempts) == 0 {
		return
	}
	size := 0
	for i := range attempts {
		size += attempts[i].most()
	}
	start := e.room(size)
	for i := range attempts {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		e.buf = attempts[i].append(e.buf)
	}
	e.add(reserved.History, start)
}

// parseHistory reads "attempt:class:unixms,…". The classes are parts of s.
func parseHistory(s string) ([]Attempt, error) {
	attempts := make([]Attempt, 0, strings.Count(s, ",")+1)
	for more := true; more; {
		var entry string
		entry, s, more = strings.Cut(s, ",")
		number, rest, ok := strings.Cut(entry, ":")
		class, at, ok2 := strings.Cut(rest, ":")
		if !ok || !ok2 || !classify.ValidClass(class) {
			return nil, ErrSyntax
		}
		n, err := reserved.Int(number, 0, MaxAttempts)
		if err != nil {
			return nil, err
		}
		ms, err := reserved.Int(at, 0, reserved.MaxMillis)
		if err != nil {
			return nil, err
		}
		attempts = append(attempts, Attempt{Number: int(n), Class: class, At: time.UnixMilli(ms)})
	}
	return attempts, nil
}
