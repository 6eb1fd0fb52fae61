package serve

import (
	"path"

	"github.com/sidingkafka/siding/serve/internal/rule"
)

// circuit is the state of a rule on a topic.
type circuit struct {
	rule  string
	state rule.State
}

// circuitStates are the states of rules in metrics.
var circuitStates = []string{"closed", "open"}

func (c *circuit) name() string {
	if c.state.IsOpen() {
		return "open"
	}
	return "closed"
}

// circuits returns the states of the rules that apply to the topic, but for those that cannot be
// read.
func (t *topic) circuits(rules []Rule) (all []circuit) {
	for i := range rules {
		if fits, _ := path.Match(rules[i].Topics, t.DeadLetterTopic.Topic); !fits {
			continue
		}
		if state, err := t.ruleState(rules[i].Name); err == nil {
			all = append(all, circuit{rules[i].Name, state})
		}
	}
	return all
}

// ruleList returns the rules; none if no file of rules is configured.
func (s *Server) ruleList() []Rule {
	if s.rules == nil {
		return nil
	}
	return s.rules.get()
}
