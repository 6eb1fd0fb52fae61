package serve_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/client"
)

// However often a request is sent, and to whichever server, its key means one run.
func TestServer_RepeatedKeyMeansTheSameRun(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	done := c.outage(6)
	first, _ := c.serve(serve.Config{})
	second, _ := c.serve(serve.Config{})
	opens(t, first, "orders.dlq", 6)
	opens(t, second, "orders.dlq", 6)
	request := api.RunRequest{RunOptions: api.RunOptions{Pace: quick}}
	var sent sync.WaitGroup
	var mu sync.Mutex
	ids := map[string]int{}
	var one api.Run
	for i := range 6 {
		sent.Go(func() {
			run, err := []*client.Client{first, second}[i%2].Start(t.Context(), "orders.dlq", request, "k1")
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("request %d: %v", i, err)
				return
			}
			ids[run.ID]++
			one = run
		})
	}
	sent.Wait()
	if len(ids) != 1 {
		t.Fatalf("the runs are %v, want one", ids)
	}
	ends(t, first, one)
	for _, cl := range []*client.Client{first, second} {
		if run, err := cl.Start(t.Context(), "orders.dlq", request, "k1"); err != nil || run.ID != one.ID {
			t.Errorf("after the run: %s, %v, want %s", run.ID, err, one.ID)
		}
		if _, err := cl.Start(t.Context(), "orders.dlq", api.RunRequest{}, "k1"); !client.IsProblem(err, api.KeyReused) {
			t.Errorf("another request with the key: %v", err)
		}
		if _, err := cl.Start(t.Context(), "orders.dlq", request, ""); !client.IsProblem(err, api.NothingSelected) {
			t.Errorf("a request without a key: %v", err)
		}
	}
	if done.Load() != 6 {
		t.Errorf("%d records were handled, want 6", done.Load())
	}
}

// One letter goes out with changes, and the ledger says that it was changed.
func TestServer_RedrivesALetterWithChanges(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	c.outage(3)
	cl, _ := c.serve(serve.Config{})
	opens(t, cl, "orders.dlq", 3)
	o := api.RunOptions{Why: "typo", Pace: quick, Edit: api.Edit{SetHeaders: []api.SetHeader{{Key: "currency", Value: api.NewBytes{Text: "EUR"}}}, Patch: []byte(`{"n":7}`)}}
	bad := o
	bad.Edit = api.Edit{SetHeaders: []api.SetHeader{{Key: "dlq-reason"}}, Patch: []byte(`[1]`), Value: &api.NewBytes{Text: "x"}}
	if _, err := cl.Redrive(t.Context(), "orders.dlq", 0, 0, bad, ""); !client.IsProblem(err, api.BadEdit) {
		t.Errorf("a broken edit: %v", err)
	}
	run, err := cl.Redrive(t.Context(), "orders.dlq", 0, 0, o, "")
	if err != nil {
		t.Fatal(err)
	}
	if last := ends(t, cl, run); last.Counts.Succeeded != 1 || last.Counts.Selected != 1 {
		t.Errorf("the run ended as %+v", last)
	}
	l, err := cl.Letter(t.Context(), "orders.dlq", 0, 0)
	if err != nil || l.State != "succeeded" || len(l.Ledger) == 0 {
		t.Fatalf("the letter is %+v, %v", l, err)
	}
	if e := l.Ledger[0]; strings.Join(e.Edited, " ") != "headers value" || e.By != "local" {
		t.Errorf("the ledger's first entry is %+v", e)
	}
	opens(t, cl, "orders.dlq", 2)
	if _, err := cl.Redrive(t.Context(), "orders.dlq", 0, 0, o, ""); !client.IsProblem(err, api.NothingSelected) {
		t.Errorf("a letter that is resolved: %v", err)
	}
}
