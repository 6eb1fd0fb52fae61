package serve

import (
	"errors"
	"time"

	"github.com/sidingkafka/siding/redrive"
)

// firstRest is how long a rule rests on a topic after an error. Each further one doubles it, up to
// the rule's wait.
const firstRest = 30 * time.Second

// resting returns the rest of a rule on the topic; the zero value if it may try again.
func (t *topic) resting(r *Rule, now time.Time) rest {
	t.mu.Lock()
	defer t.mu.Unlock()
	if is := t.rests[r.Name]; now.Before(is.until) {
		return is
	}
	return rest{}
}

// lastError returns why a rule could not do on the topic what it wanted to do last; nil if it
// could.
func (t *topic) lastError(r *Rule) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rests[r.Name].err
}

// rest makes a rule rest on the topic after an error, and forgets the rests without one.
func (t *topic) rest(r *Rule, now time.Time, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		delete(t.rests, r.Name)
		return
	}
	if t.rests == nil {
		t.rests = map[string]rest{}
	}
	wait := min(max(2*t.rests[r.Name].wait, firstRest), max(r.Wait, firstRest))
	is := rest{until: now.Add(wait), wait: wait, err: err}
	if refused, ok := errors.AsType[*redrive.RefusedError](err); ok {
		is.groups = refused.Groups
	}
	t.rests[r.Name] = is
}
