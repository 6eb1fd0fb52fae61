package console

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
)

// A plan is a sentence before it is a table, and its warnings stand above the button.
func TestRedrive_PlanIsASentenceFirst(t *testing.T) {
	t.Parallel()
	c := newSpecimen(plain)
	c.role = access.Operator
	text := look(t, c, "/topics/orders.dlq/redrive?class=tax.*&since=6h&rate=2.5&canary=none")
	has(t, "the plan", text, "Open letters of orders.dlq: class tax.* and since",
		"Sends 1,902 letters to billing at 2.5/s: 38 min. Only group billing sees them. None goes first. Stops when tax.TableMiss appears again.", "Warning no rate for region",
		"Look twice: there are warnings, a limit of the run is off. Type the number of letters, 1,902, to go on.", "Send 1,902 letters", "Letters by class", "Plan again")
	if w, s, b := strings.Index(text, "Warning"), strings.Index(text, "Sends"), strings.Index(text, "Send 1,902"); s > w || w > b {
		t.Errorf("the sentence, the warning and the button are at %d, %d and %d", s, w, b)
	}
}

// Who may not act sees why, and who gives the right; there is no button.
func TestRedrive_SaysWhichRoleItTakes(t *testing.T) {
	t.Parallel()
	c := newSpecimen(plain)
	for _, path := range []string{"/topics/orders.dlq", "/topics/orders.dlq/letters/1/5"} {
		if text := look(t, c, path); strings.Contains(text, "edrive…") || !strings.Contains(text, "takes the role operator on orders.dlq") {
			t.Errorf("%s of a reader: %s", path, text)
		}
	}
	c.role = access.Operator
	for _, path := range []string{"/topics/orders.dlq", "/topics/orders.dlq/letters/1/6"} {
		if text := look(t, c, path); !strings.Contains(text, "edrive…") || strings.Contains(text, "takes the role") {
			t.Errorf("%s of an operator: %s", path, text)
		}
	}
	has(t, "an open letter", look(t, c, "/topics/orders.dlq/letters/1/6"), "Discard…")
	has(t, "a discarded letter", look(t, c, "/topics/orders.dlq/letters/1/7"), "Reopen…")
}

// Brokers that did not answer while a run was begun have used up the time of the request. They are
// not asked for another plan: that once took longer than the answer may.
func TestRedrive_MakesNoPlanWithoutTime(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := &visit{Request: httptest.NewRequestWithContext(ctx, "POST", "/topics/orders.dlq/redrive", nil), who: &access.Identity{Name: "local"}}
	if p, err := plan(open(t).site.cfg.Desk, r, &subject{topic: "orders.dlq"}, &api.RunRequest{}); p != nil || err != nil {
		t.Errorf("the plan is %+v, %v", p, err)
	}
}
