package serve

import (
	"time"

	"github.com/sidingkafka/siding/serve/internal/rule"
)

// circuit is the state of a rule on a topic.
type circuit struct {
	rule   string
	state  rule.State
	paused bool
}

// circuitStates are the states of rules in metrics.
var circuitStates = []string{"closed", "open", "paused"}

func (c *circuit) name() string {
	switch {
	case c.paused:
		return "paused"
	case c.state.IsOpen():
		return "open"
	}
	return "closed"
}

// circuits returns the states of the rules that apply to the topic, but for those that cannot be
// read.
func (t *topic) circuits(rules []rule.Rule, now time.Time) (all []circuit) {
	for i := range rules {
		r := &rules[i]
		if !r.Covers(t.DeadLetterTopic.Topic) {
			continue
		}
		t.lastFailed(r, now) // each server hears of failures, whoever owns the topic
		if state, err := t.ruleState(r.Name, now); err == nil {
			state, _ = t.settled(r, state, now)
			state.Why = outside(t.hidden, state.Why)
			all = append(all, circuit{r.Name, state, t.paused(r.Name) != nil})
		}
	}
	return all
}

// ruleList returns the rules; none if no file of rules is configured.
func (s *Server) ruleList() []rule.Rule {
	if s.rules == nil {
		return nil
	}
	return s.rules.Get()
}
