package serve_test

import (
	"os"
	"testing"

	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/client"
)

// A client that follows a run sees each state once, up to the last, though the connection breaks
// and another server answers.
func TestServer_EventsGoOnBehindTheLastOne(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	c.outage(12)
	first, _ := c.serve(serve.Config{})
	second, _ := c.serve(serve.Config{})
	opens(t, first, "orders.dlq", 12)
	run, err := first.Start(t.Context(), "orders.dlq", api.RunRequest{RunOptions: api.RunOptions{Pace: api.Pace{Rate: 4, RampMs: -1, WindowMs: 3000}}}, "")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	var last client.Event
	take := func(cl *client.Client, most int) {
		for e, err := range cl.Follow(t.Context(), "orders.dlq", run.ID, last.ID) {
			if err != nil {
				t.Fatal(err)
			}
			if seen[e.ID] || e.Run.Counts.Sent < last.Run.Counts.Sent {
				t.Errorf("event %s comes behind %s: %+v", e.ID, last.ID, e.Run.Counts)
			}
			seen[e.ID], last = true, e
			if most--; most == 0 {
				return
			}
		}
	}
	take(first, 2)
	take(second, 1)
	take(first, -1) // more than the second in which a request must be read
	if last.Run.State != "done" || last.Run.Counts.Succeeded != 12 || len(seen) < 4 {
		t.Errorf("%d events, the last is %+v", len(seen), last)
	}
	n := len(seen)
	take(first, -1)
	if len(seen) != n {
		t.Errorf("%d events come behind the last one", len(seen)-n)
	}
	for _, err := range first.Follow(t.Context(), "orders.dlq", "nobody", "") {
		if !client.IsProblem(err, api.NoRun) {
			t.Errorf("a run that does not exist: %v", err)
		}
	}
}

// A client that follows a run is asked for credentials before each event: one whose token was
// withdrawn gets no more, though a stream lasts five minutes.
func TestServer_EventsEndWithTheirToken(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	c.outage(12)
	file := tokenFile(t, map[string]string{"ada": "[{role: operator}]"})
	s, _ := c.run(serve.Config{Access: serve.Access{TokensFile: file}})
	ada := c.clientOf(s, "ada")
	opens(t, ada, "orders.dlq", 12)
	run, err := ada.Start(t.Context(), "orders.dlq", api.RunRequest{RunOptions: api.RunOptions{Pace: api.Pace{Rate: 1, RampMs: -1, WindowMs: 60_000}}}, "")
	if err != nil {
		t.Fatal(err)
	}
	var last client.Event
	for e, err := range ada.Follow(t.Context(), "orders.dlq", run.ID, "") {
		if err != nil {
			t.Fatal(err)
		}
		if last.ID == "" {
			if err := os.WriteFile(file, []byte("tokens: []\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if last = e; e.Run.Counts.Sent == 12 {
			break
		}
	}
	if last.ID == "" || last.Run.Counts.Sent == 12 {
		t.Errorf("the events ended with %+v, and the token was withdrawn after the first one", last.Run.Counts)
	}
}
