package console

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/sidingkafka/siding/serve/internal/access"
)

// Rules have their state by topic, and each what it would do and what it did.
func TestRules_SayTheirStates(t *testing.T) {
	t.Parallel()
	data := newArchive(plain)
	c := open(t, data)
	has(t, "the rules", look(t, c, "/rules", http.StatusOK), "2 rules · circuit open on 1 topic", "billing", "headers job-type=billing", "where ", "failed since ", "quiet before 10 min", "orders.dlq circuit open, lets one letter through in", "It is for no topic that is there now.")
	text := look(t, c, "/rules/billing/topics/orders.dlq", http.StatusOK)
	has(t, "a rule", text, "It would do nothing now: ", "It selects 7 open letters. It read 12 letters to tell which fit. where failed on 1 letter.", "redrive", "paused", "the rule", "takes the role admin on orders.dlq")
	if strings.Contains(text, "of another topic") || strings.Contains(text, "Pause it here") {
		t.Errorf("the rule of a reader: %s", text)
	}
	has(t, "an unknown rule", look(t, c, "/rules/none/topics/orders.dlq", http.StatusNotFound), "there is no rule none")
	has(t, "another topic", look(t, c, "/rules/billing/topics/bills.dlq", http.StatusNotFound), "There is no dead-letter topic")
	data.settled = true
	has(t, "no rules", look(t, open(t, data), "/rules", http.StatusOK), "no rules", "rules-file", "cool-down: 10m")
}

// An admin pauses a rule with a reason and lets it go on, once for each form.
func TestRules_ArePausedAndResumed(t *testing.T) {
	t.Parallel()
	data := newArchive(plain)
	data.role = access.Admin
	c := open(t, data)
	const path = "/rules/an%20outage/topics/orders.dlq"
	for _, want := range []string{"pause an outage: deploy", "resume an outage: deploy"} {
		action, fields := formIn(t, ask(c, "GET", path))
		fields.Set("why", "deploy")
		for range 2 {
			if w := send(c, action, fields); w.Code != http.StatusSeeOther || w.Header().Get("Location") != path {
				t.Errorf("%d to %q: %s", w.Code, w.Header().Get("Location"), w.Body)
			}
		}
		if !slices.Equal(data.did, []string{want}) {
			t.Errorf("what was done: %v", data.did)
		}
		data.did, data.paused = nil, true
	}
	has(t, "a paused rule", look(t, c, "/rules", http.StatusOK), "paused on 1 topic", "paused by billing 1 h ago")
	action, fields := formIn(t, ask(c, "GET", path))
	data.refuse = &pageError{http.StatusForbidden, "this takes the role admin"}
	if w := send(c, action, fields); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "this takes the role admin") {
		t.Errorf("refused: %d: %s", w.Code, w.Body)
	}
}
