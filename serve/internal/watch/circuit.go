package watch

import (
	"time"

	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/rule"
)

// Circuit is the state of a rule on a topic.
type Circuit struct {
	Rule   string
	State  rule.State
	paused bool
}

// CircuitStates are the states of rules in metrics.
var CircuitStates = []string{"closed", "open", "paused"}

// Name returns the state as metrics name it.
func (c *Circuit) Name() string {
	switch {
	case c.paused:
		return "paused"
	case c.State.IsOpen():
		return "open"
	}
	return "closed"
}

// Circuits returns the states of the rules that apply to the topic, but for those that cannot be
// read.
func Circuits(t *Topic, rules []rule.Rule, now time.Time) (all []Circuit) {
	for i := range rules {
		r := &rules[i]
		if !r.Covers(t.DeadLetterTopic.Topic) {
			continue
		}
		lastFailed(t, r, now) // each server observes failures, whichever owns the topic
		if state, err := RuleState(t, r.Name, now); err == nil {
			state, _ = Settled(t, r, state, now)
			state.Why = failure.Outside(t.view.Redact, state.Why)
			all = append(all, Circuit{r.Name, state, Paused(t, r.Name) != nil})
		}
	}
	return all
}
