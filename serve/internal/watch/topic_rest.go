package watch

import (
	"errors"
	"math"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/internal/rule"
)

// firstRest is how long a rule rests on a topic after an error. Each further one doubles it, up to
// the rule's wait.
const firstRest = 30 * time.Second

// Resting returns the rest of a rule on the topic; the zero value if it may try again.
func Resting(t *Topic, r *rule.Rule, now time.Time) Rest {
	t.mu.Lock()
	defer t.mu.Unlock()
	if is := t.rests[r.Name]; now.Before(is.until) {
		return is
	}
	return Rest{}
}

// LastError returns why a rule could not do on the topic what it wanted to do last; nil if it
// could.
func LastError(t *Topic, r *rule.Rule) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rests[r.Name].Err
}

// RestAfter makes a rule rest on the topic after an error about letters that a filter selects, and
// forgets the rests without one.
func RestAfter(t *Topic, r *rule.Rule, f dlq.Filter, now time.Time, err error) {
	groups, homeless := homeless(t, r, f, now, err)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		delete(t.rests, r.Name)
		return
	}
	if t.rests == nil {
		t.rests = map[string]Rest{}
	}
	wait := min(max(2*t.rests[r.Name].Wait, firstRest), max(r.Wait, firstRest))
	t.rests[r.Name] = Rest{until: now.Add(wait), Wait: wait, Err: err, Groups: groups, Homeless: homeless}
}

// homeless returns the groups to which letters of a rule cannot come home, and how many letters of
// other groups cannot, if an error says that none can.
func homeless(t *Topic, r *rule.Rule, f dlq.Filter, now time.Time, err error) (groups []string, others int64) {
	refused, ok := errors.AsType[*redrive.RefusedError](err)
	if !ok {
		return nil, math.MaxInt64
	}
	switch refused.Reason {
	case redrive.RefusedNothing, redrive.RefusedPartitions, redrive.RefusedTooOften, redrive.RefusedNoTier, redrive.RefusedNoMembers:
		f = Leaving(f, refused.Groups)
		return refused.Groups, MayFit(t, r, &f, now)
	}
	return refused.Groups, math.MaxInt64
}
