package serve_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sidingkafka/siding/consumer/consumertest"
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
	for what, edit := range map[string]api.Edit{
		"is broken":            {SetHeaders: []api.SetHeader{{Key: "dlq-reason"}}, Patch: []byte(`[1]`), Value: &api.NewBytes{Text: "x"}},
		"has a patch too deep": {Patch: []byte(strings.Repeat(`{"a":`, 101) + "1" + strings.Repeat("}", 101))},
	} {
		bad.Edit = edit
		if _, err := cl.Redrive(t.Context(), "orders.dlq", 0, 0, bad, ""); !client.IsProblem(err, api.BadEdit) {
			t.Errorf("an edit that %s: %v", what, err)
		}
	}
	bad = api.RunOptions{Target: api.Target{Topic: "no topic"}}
	if _, err := cl.Redrive(t.Context(), "orders.dlq", 0, 0, bad, ""); !client.IsProblem(err, api.NoTarget) {
		t.Errorf("a target that no topic can have as its name: %v", err)
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

// Six requests that each retry one letter began one run, and five were refused since it went on.
// They are one run. Those that come while it goes on wait, and a letter that cannot be sent refuses
// no other one.
func TestServer_RetriesOfSingleLettersAreOneRun(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := outageAt(t, k, 8)
		is.broken.Store(false)
		is.letterFor("gone", "http.503", time.Now()) // its offset is 8
		is.serve(serve.Config{})
		is.within(time.Minute, "the letters are known", func() bool { return is.known().Open == 9 })
		retry := func(offset int, into any) int {
			return is.ask(http.MethodPost, fmt.Sprintf("/topics/orders.dlq/letters/0/%d/redrive", offset), `{"why":"fixed"}`, into)
		}
		var sent sync.WaitGroup
		var runs [6]api.Run
		for i := range runs {
			sent.Go(func() {
				if code := retry(i, &runs[i]); code != http.StatusAccepted {
					t.Errorf("letter %d: %d", i, code)
				}
			})
		}
		sent.Wait()
		for i := range runs {
			if runs[i].ID != runs[0].ID {
				t.Errorf("letter %d is in run %s, and letter 0 in run %s", i, runs[i].ID, runs[0].ID)
			}
		}
		if all := ask[[]api.Run](is, "/runs"); len(all) != 1 || all[0].Counts.Selected != 6 {
			t.Errorf("the runs are %+v", all)
		}
		var codes [3]int
		for i := range codes {
			sent.Go(func() { codes[i] = retry(6+i, nil) })
		}
		sent.Wait()
		if codes != [3]int{http.StatusAccepted, http.StatusAccepted, http.StatusConflict} {
			t.Errorf("two letters while a run goes on, and one of a group that is gone: %d", codes)
		}
		is.within(10*time.Minute, "all came home", func() bool { return is.done.Load() == 8 })
	})
}
