package serve_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/client"
)

// outage has n letters of class http.503, from a service that works again. done counts the records
// that it handled since.
func (c *cluster) outage(n int) (done *atomic.Int64) {
	c.T.Helper()
	var broken atomic.Bool
	done = &atomic.Int64{}
	broken.Store(true)
	c.service(&broken, done)
	for i := range n {
		if err := c.Client.ProduceSync(c.T.Context(), &kgo.Record{Topic: "orders", Partition: int32(i % 3), Key: fmt.Append(nil, i), Value: fmt.Appendf(nil, `{"n":%d}`, i)}).FirstErr(); err != nil {
			c.T.Fatal(err)
		}
	}
	s, stop := c.run(serve.Config{Group: "outage"})
	shows(c.T, s, fmt.Sprintf(`siding_dead_letters_open{error_type="http.503",messaging_destination_name="orders.dlq"} %d`, n))
	stop()
	broken.Store(false)
	return done
}

// ends waits until a run has ended at a server, and its letters have outcomes.
func ends(t *testing.T, cl *client.Client, run api.Run) (last api.Run) {
	t.Helper()
	eventually(t, fmt.Sprintf("run %s has ended", run.ID), func() bool {
		var err error
		last, err = cl.Run(t.Context(), run.Topic, run.ID)
		return err == nil && last.Ended != nil && last.Counts.Pending == 0
	})
	return last
}

// quick is a pace for tests.
var quick = api.Pace{RampMs: -1, WindowMs: 200}

func number(n int64) *int64 { return &n }

// A run sends the letters that a filter selects, and the ledger says who began it and why. However
// often the request is sent at once, and to whichever server, its key means one run.
func TestServer_RunBringsLettersHome(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	c := newCluster(t, "orders")
	done := c.outage(12)
	s, _ := c.run(serve.Config{})
	cl := c.clientOf(s, "")
	opens(t, cl, "orders.dlq", 12)
	request := api.RunRequest{Expect: number(11), RunOptions: api.RunOptions{Why: "fixed", Pace: quick}}
	if _, err := cl.Start(t.Context(), "orders.dlq", request, ""); !client.IsProblem(err, api.WrongNumber) {
		t.Errorf("a run of another number: %v", err)
	}
	request.Expect = number(12)
	second, _ := c.serve(serve.Config{})
	opens(t, second, "orders.dlq", 12)
	before := s.RunVersion("orders.dlq")
	var sent sync.WaitGroup
	var runs [6]api.Run
	for i := range runs {
		sent.Go(func() {
			var err error
			if runs[i], err = []*client.Client{cl, second}[i%2].Start(t.Context(), "orders.dlq", request, "k1"); err != nil {
				t.Errorf("request %d: %v", i, err)
			}
		})
	}
	sent.Wait()
	run := runs[0]
	for i := range runs {
		if is := &runs[i]; is.ID != run.ID || is.By != "local" || is.Why != "fixed" || is.Counts.Selected != 12 {
			t.Errorf("request %d began the run %+v", i, is)
		}
	}
	if !slices.ContainsFunc(runs[:], func(r api.Run) bool { return r.Here }) {
		t.Error("no server has the run")
	}
	last := ends(t, cl, run)
	eventually(t, "the runs have another version", func() bool { return s.RunVersion("orders.dlq") != before })
	if last.State != "done" || last.Counts.Succeeded != 12 || done.Load() != 12 {
		t.Errorf("the run ended as %+v; %d records were handled", last, done.Load())
	}
	if again, err := cl.Start(t.Context(), "orders.dlq", request, "k1"); err != nil || again.ID != run.ID {
		t.Errorf("the same key again: %s, %v, want %s", again.ID, err, run.ID)
	}
	if _, err := cl.Start(t.Context(), "orders.dlq", api.RunRequest{}, "k1"); !client.IsProblem(err, api.KeyReused) {
		t.Errorf("another request with the key: %v", err)
	}
	if _, err := cl.Redrive(t.Context(), "orders.dlq", 0, 0, request.RunOptions, ""); !client.IsProblem(err, api.NothingSelected) {
		t.Errorf("a letter that is resolved: %v", err)
	}
	l, err := cl.Letter(t.Context(), "orders.dlq", 0, 0)
	if err != nil || len(l.Ledger) == 0 || l.Ledger[len(l.Ledger)-1].By != "local" || l.Ledger[len(l.Ledger)-1].Run != run.ID {
		t.Errorf("the letter is %+v, %v", l, err)
	}
	if _, err := cl.Resume(t.Context(), "orders.dlq", run.ID, api.ResumeRequest{}); !client.IsProblem(err, api.RunHeld) {
		t.Errorf("a run that has ended is resumed: %v", err)
	}
	if _, err := cl.Run(t.Context(), "orders.dlq", "nobody"); !client.IsProblem(err, api.NoRun) {
		t.Errorf("a run that does not exist: %v", err)
	}
}

// A list of runs has the newest that have ended, as many as asked for, and all that go on.
func TestServer_ListsTheNewestRuns(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "bills", "orders")
	c.outage(4)
	cl, _ := c.serve(serve.Config{})
	opens(t, cl, "orders.dlq", 4)
	var ids []string
	for i := range 3 {
		run, err := cl.Redrive(t.Context(), "orders.dlq", int32(i), 0, api.RunOptions{Pace: quick}, "")
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, ends(t, cl, run).ID)
	}
	for _, list := range []struct {
		topic string
		limit int
		want  []string
	}{
		{"orders.dlq", 0, []string{ids[2], ids[1], ids[0]}},
		{"orders.dlq", 2, []string{ids[2], ids[1]}},
		{"", 1, []string{ids[2]}},
		{"bills.dlq", 1, nil},
	} {
		runs, err := cl.Runs(t.Context(), list.topic, list.limit)
		var got []string
		for i := range runs {
			got = append(got, runs[i].ID)
		}
		if err != nil || !slices.Equal(got, list.want) {
			t.Errorf("%q, at most %d: %v, %v, want %v", list.topic, list.limit, got, err, list.want)
		}
	}
	if _, err := cl.Runs(t.Context(), "orders.dlq", 10001); !client.IsProblem(err, api.InvalidRequest) {
		t.Errorf("10,001 runs: %v", err)
	}
	// The next one goes on, so it is there beside the one that ended last.
	going, err := cl.Redrive(t.Context(), "orders.dlq", 0, 1, api.RunOptions{Pace: api.Pace{RampMs: -1, WindowMs: 60_000}}, "")
	if err != nil {
		t.Fatal(err)
	}
	if runs, err := cl.Runs(t.Context(), "orders.dlq", 1); err != nil || len(runs) != 1 || runs[0].ID != going.ID {
		t.Errorf("with one that goes on: %+v, %v", runs, err)
	}
}

// A server that ends leaves its runs in order, and another one goes on with them by itself.
func TestServer_AnotherServerGoesOnWithARun(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	done := c.outage(16)
	first, stop := c.serve(serve.Config{})
	opens(t, first, "orders.dlq", 16)
	run, err := first.Start(t.Context(), "orders.dlq", api.RunRequest{RunOptions: api.RunOptions{Pace: api.Pace{Rate: 4, RampMs: -1, WindowMs: 200}}}, "")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the run sends", func() bool { return done.Load() > 1 })
	stop()
	if n := done.Load(); n >= 16 {
		t.Fatalf("the run was over before its server was stopped")
	}
	if _, err := first.Start(t.Context(), "orders.dlq", api.RunRequest{}, ""); !client.IsProblem(err, api.NotRunning) && !client.IsProblem(err, api.UnfinishedRun) {
		t.Errorf("a server that has ended begins a run: %v", err)
	}
	second, _ := c.serve(serve.Config{})
	eventually(t, "the second server has the run", func() bool {
		got, err := second.Run(t.Context(), "orders.dlq", run.ID)
		return err == nil && got.Here
	})
	if last := ends(t, second, run); last.State != "done" || last.Counts.Succeeded != 16 || done.Load() != 16 {
		t.Errorf("the run ended as %+v; %d records were handled", last, done.Load())
	}
}
