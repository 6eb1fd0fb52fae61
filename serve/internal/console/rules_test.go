package console

import (
	"strings"
	"testing"
)

// Rules have their state by topic, and each what it would do and what it did.
func TestRules_SayTheirStates(t *testing.T) {
	t.Parallel()
	c := newSpecimen(plain)
	has(t, "the rules", look(t, c, "/rules"), "2 rules · circuit open on 1 topic", "billing", "headers job-type=billing", "where ", "failed since ", "quiet before 10 min", "orders.dlq circuit open, lets one letter through in", "It is for no topic that is there now.")
	text := look(t, c, "/rules/billing/topics/orders.dlq")
	has(t, "a rule", text, "It would do nothing now: ", "It selects 7 open letters. It read 12 letters to tell which fit. where failed on 1 letter.", "redrive", "paused", "the rule", "takes the role admin on orders.dlq")
	if strings.Contains(text, "of another topic") || strings.Contains(text, "Pause it here") {
		t.Errorf("the rule of a reader: %s", text)
	}
	c.paused = true
	has(t, "a paused rule", look(t, c, "/rules"), "paused on 1 topic", "paused by billing 1 h ago")
	c.settled = true
	has(t, "no rules", look(t, c, "/rules"), "no rules", "rules-file", "cool-down: 10m")
}
