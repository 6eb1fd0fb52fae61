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
func (t *Topic) Circuits(rules []rule.Rule, now time.Time) (all []Circuit) {
	for i := range rules {
		r := &rules[i]
		if !r.Covers(t.DeadLetterTopic.Topic) {
			continue
		}
		t.lastFailed(r, now) // each server observes failures, whoever owns the topic
		if state, err := t.RuleState(r.Name, now); err == nil {
			state, _ = t.Settled(r, state, now)
			state.Why = failure.Outside(t.hidden, state.Why)
			all = append(all, Circuit{r.Name, state, t.Paused(r.Name) != nil})
		}
	}
	return all
}
