package console

import (
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
)

// A run that goes on is on each page, with its outcomes and a button that ends it: also on pages
// that ask something, and on those that refuse. Its own page has it once.
func TestCard_IsOnEachPage(t *testing.T) {
	t.Parallel()
	c := newSpecimen(plain)
	c.role = access.Operator
	for _, path := range []string{"/", "/topics/orders.dlq", "/topics/orders.dlq/letters/1/5", "/runs", "/audit", "/topics/orders.dlq/redrive", "/nowhere", "/topics/orders.dlq/runs/r0"} {
		card := partOf(t, ask(c, path), "runs")
		has(t, path, textOf(card), "Run billing of orders.dlq", "sending", "1,000 of 1,902 sent · 900 succeeded · 40 failed again · 60 pending", "900 succeeded", "902 not sent", "canary ramp full watching",
			"rate now unknown yet", "rate allowed 20/s", "lag 60 of at most 1,000", "Abort")
		if strings.Contains(textOf(card), "r0") {
			t.Errorf("%s has a card of a run that ended long ago", path)
		}
	}
	own := ask(c, "/topics/orders.dlq/runs/billing")
	if text := textOf(partOf(t, own, "runs")); text != "" {
		t.Errorf("the run's own page has the card %q, too", text)
	}
	text := textOf(partOf(t, own, "live"))
	has(t, "the run's page", text, "rate allowed 20/s", "Abort", "By billing, began 1 min ago", "What it keeps to", "rate 50/s", "What it told", "class with which they failed again")
	if strings.Contains(text, "Resume") {
		t.Errorf("a run that a process owns can be resumed: %s", text)
	}
	has(t, "an aborted run", textOf(partOf(t, ask(c, "/topics/orders.dlq/runs/r0"), "live")), "aborted", "4 not sent", "Of the letters that were not sent, 4 stayed open.")
	c.silent = true
	has(t, "a silent run", textOf(partOf(t, ask(c, "/topics/orders.dlq/runs/billing"), "live")), "no process owns it; the last sign of one was", "Resume")
	c.role = access.Reader
	if text := textOf(partOf(t, ask(c, "/"), "runs")); !strings.Contains(text, "takes the role operator on orders.dlq") {
		t.Errorf("the card of a reader: %s", text)
	}
	for _, n := range parse(t, ask(c, "/").Body) {
		if to := attr(n, "action"); strings.HasSuffix(to, "/abort") || strings.HasSuffix(to, "/resume") {
			t.Errorf("a reader has a button to %s", to)
		}
	}
}

// Phases follow from what the run says, also where it waits.
func TestPhasesOf_FollowTheRun(t *testing.T) {
	t.Parallel()
	pace := api.Pace{Rate: 50, Canary: 2}
	for name, test := range map[string]struct {
		run  api.Run
		want string
	}{
		"canary":            {api.Run{State: "canary", Rate: 5}, "canary"},
		"waits in canary":   {api.Run{State: "waiting", Rate: 5, Counts: api.Counts{Sent: 2}}, "canary"},
		"ramp":              {api.Run{State: "sending", Rate: 5}, "ramp"},
		"full":              {api.Run{State: "sending", Rate: 50}, "full"},
		"waits at full":     {api.Run{State: "waiting", Rate: 50, Counts: api.Counts{Sent: 20}}, "full"},
		"no limit":          {api.Run{State: "sending", Rate: -1}, "full"},
		"watching":          {api.Run{State: "watching", Rate: 50}, "watching"},
		"of another future": {api.Run{State: "odd", Rate: 50}, "full"},
	} {
		test.run.Pace = pace
		var got []string
		for _, p := range phasesOf(&test.run) {
			if p.Current {
				got = append(got, p.Name)
			}
		}
		if len(got) != 1 || got[0] != test.want {
			t.Errorf("%s: %v, want %s", name, got, test.want)
		}
	}
}

// The rate is what was seen, and unknown before.
func TestMeter_SaysWhatItSaw(t *testing.T) {
	t.Parallel()
	var m meter
	now := time.Now()
	look := func(after time.Duration, sent int64, want string) {
		t.Helper()
		got := "unknown"
		if rate, known := m.observe(&api.Run{Topic: "orders.dlq", ID: "r", State: "sending", Heartbeat: now.Add(after), Counts: api.Counts{Sent: sent}}); known {
			got = decimal(rate)
		}
		if got != want {
			t.Errorf("after %v: %s, want %s", after, got, want)
		}
	}
	look(0, 10, "unknown")
	look(time.Second, 20, "unknown")
	look(4*time.Second, 50, "10")
	look(3*time.Second, 40, "10") // an older look, by another server
	look(24*time.Second, 50, "0")
	look(44*time.Second, 90, "2")
	if _, known := m.observe(&api.Run{Topic: "orders.dlq", ID: "r", State: "done"}); known || len(m.of) != 0 {
		t.Error("a run that is over is measured")
	}
}
