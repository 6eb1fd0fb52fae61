package headers

// What a further failed delivery changes in a Meta.

import (
	"cmp"
	"slices"
	"time"

	"github.com/sidingkafka/siding/classify"
)

// Fail records one more failed delivery. It counts the attempt, sets the last error and the times,
// and adds to the history. message is the text that may be shown, after redaction. earlier are the
// failed calls of the same delivery before this one, oldest first; Fail sets their Number, and
// their Run if it is 0.
// Fail clears Reason, NotBefore and Held, which the caller sets. Earlier copies of m keep their
// history; an empty one that has room is filled in place.
func (m *Meta) Fail(r classify.Result, message string, at time.Time, earlier ...Attempt) {
	m.Attempts = min(m.Attempts+1, MaxAttempts)
	m.Class, m.Fingerprint, m.Stack, m.Message = r.Class, r.Fingerprint, r.Stack, message
	m.FailedAt = at
	if m.FirstFailedAt.IsZero() {
		m.FirstFailedAt = at
		if len(earlier) > 0 {
			m.FirstFailedAt = earlier[0].At
		}
	}
	m.Reason, m.NotBefore, m.Held = "", time.Time{}, false
	last := Attempt{Number: m.Attempts, Class: r.Class, At: at, Verdict: r.Verdict.String(), Message: shown(message)}
	h := m.writtenHistory()
	if len(h) > 0 {
		h = slices.Clip(h)
	}
	if len(earlier) == 0 {
		h = append(h, last)
		m.History = h
		return
	}
	last.Run = max(len(earlier), earlier[len(earlier)-1].Run) + 1
	m.History = append(append(h, earlier...), last)
	for i := range earlier {
		a := &m.History[len(h)+i]
		a.Number, a.Run, a.Message = m.Attempts, cmp.Or(a.Run, i+1), shown(a.Message)
	}
}
