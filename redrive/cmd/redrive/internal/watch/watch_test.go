package watch_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/commitmark"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/demo"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

func TestMain(m *testing.M) { roottest.RunTests(m) }

// line is what a script reads.
type line struct {
	State           string
	Open, Pending   int64
	Resolved        int64
	Recent          int64
	Problem, Oldest *string
	Groups          []struct {
		Class, Sample     string
		Open, FailedAgain int64
		Versions          []string
		New               bool
		First, Last       time.Time
	}
	Guards []struct{ Group, State string }
	Run    *struct {
		State                   string
		Sent, Succeeded, Failed int64
	}
}

// written keeps what a command writes.
type written struct {
	mu   sync.Mutex
	text strings.Builder
}

func (w *written) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(b)
}

func (w *written) lines(t *testing.T) (all []line) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for text := range strings.Lines(w.text.String()) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%v: %q", err, text)
		}
		all = append(all, l)
	}
	return all
}

// last is the last line.
func (w *written) last(t *testing.T) line {
	t.Helper()
	all := w.lines(t)
	if len(all) == 0 {
		t.Fatal("nothing was written")
	}
	return all[len(all)-1]
}

// watching runs watch until the test or stop ends it, and checks its exit code.
func watching(t *testing.T, n *roottest.Night) (out *written, stop func()) {
	t.Helper()
	out = &written{}
	ctx, cancel := context.WithCancelCause(t.Context())
	code := make(chan int)
	go func() { code <- n.Invoke(ctx, out, "watch", "orders.dlq") }()
	return out, func() {
		cancel(cli.ErrInterrupted)
		if got := <-code; got != cli.ExitDone {
			t.Errorf("it ends with exit code %d", got)
		}
	}
}

// fail produces records that fail, or succeed.
func fail(t *testing.T, n *roottest.Night, class string, records int) {
	t.Helper()
	for range records {
		if err := n.Producer.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Value: []byte(class)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

// Without a terminal there is a line of JSON for each change, and none as long as nothing changes.
func TestWatch_WritesALineForEachChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := roottest.FailedNight(t, demo.Bug{Class: "tax", Message: "no rate", Records: 40}, demo.Bug{Class: "bank", Message: "no", Records: 20})
		out, stop := watching(t, n)
		time.Sleep(12 * time.Second)
		if got := out.lines(t); len(got) != 1 || got[0].State != "growing" || got[0].Open != 60 || got[0].Recent != 60 || len(got[0].Groups) != 2 ||
			got[0].Groups[0].Class != "tax" || got[0].Groups[0].Open != 40 || !got[0].Groups[0].New || got[0].Groups[0].Sample != "no rate" || got[0].Run != nil || got[0].Problem != nil {
			t.Errorf("at first: %+v", got)
		}
		fail(t, n, "bank", 30)
		time.Sleep(12 * time.Second)
		if got := out.last(t); got.Open != 90 || got.Groups[0].Class != "bank" || got.Groups[0].Open != 50 || got.Recent != 90 {
			t.Errorf("when others came: %+v", got)
		}
		time.Sleep(3 * time.Minute)
		if got := out.last(t); got.State != "slowing" || got.Open != 90 {
			t.Errorf("some minutes later: %+v", got)
		}
		time.Sleep(3 * time.Hour)
		stop()
		got := out.lines(t)
		if last := got[len(got)-1]; last.State != "quiet" || last.Open != 90 || last.Problem != nil {
			t.Errorf("hours later: %+v", last)
		}
		if len(got) != 4 {
			t.Errorf("%d lines, want one for each of 4 changes: %+v", len(got), got)
		}
	})
}

// The run that goes on stands there with its outcomes, and its end; its letters are settled then.
func TestWatch_FollowsTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := roottest.FailedNight(t, demo.Bug{Class: "tax", Message: "no rate", Records: 60})
		out, stop := watching(t, n)
		n.Invoke(t.Context(), io.Discard, "run", "orders.dlq", "--yes", "--ramp", "0", "--rate", "2", "--window", "10s")
		time.Sleep(10 * time.Second)
		if got := out.last(t); got.Run == nil || got.Run.State != "aborted" || got.Groups[0].FailedAgain != 1 || got.Open != 60 {
			t.Errorf("after a run that failed: %+v, %+v", got, got.Run)
		}
		n.Fix("tax")
		n.Invoke(t.Context(), io.Discard, "run", "orders.dlq", "--yes", "--ramp", "0", "--rate", "2", "--window", "10s")
		time.Sleep(10 * time.Second)
		stop()
		all := out.lines(t)
		states := map[string]int64{}
		for _, l := range all {
			if l.Run != nil {
				states[l.Run.State] = max(states[l.Run.State], l.Run.Sent)
			}
		}
		if last := all[len(all)-1]; last.State != "settled" || last.Open != 0 || last.Resolved != 61 || len(last.Groups) != 0 || last.Run.Succeeded != 60 {
			t.Errorf("at last: %+v, %+v", last, last.Run)
		}
		if sent := states["sending"]; sent == 0 || states["done"] != 60 {
			t.Errorf("the run was seen as %v", states)
		}
	})
}

// The brokers go away and come back: watch says so, and goes on.
func TestWatch_GoesOnWhereBrokersWereLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := roottest.FailedNight(t, demo.Bug{Class: "tax", Message: "no rate", Records: 20})
		out, stop := watching(t, n)
		time.Sleep(12 * time.Second)
		var mu sync.Mutex
		lost := true
		n.Cluster.ControlKey(int16(kmsg.Metadata), func(kmsg.Request) (kmsg.Response, error, bool) {
			mu.Lock()
			defer mu.Unlock()
			n.Cluster.KeepControl()
			return nil, errors.New("lost"), lost
		})
		time.Sleep(3 * time.Minute)
		if got := out.last(t); got.Problem == nil || got.Open != 20 || got.State != "growing" {
			t.Errorf("without brokers: %+v; want the problem, and the numbers from before", got)
		}
		mu.Lock()
		lost = false
		mu.Unlock()
		time.Sleep(time.Minute)
		fail(t, n, "tax", 5)
		time.Sleep(30 * time.Second)
		stop()
		if got := out.last(t); got.Problem != nil || got.Open != 25 {
			t.Errorf("with them again: %+v", got)
		}
	})
}

// An outage holds records back: few new letters are no good sign then.
func TestWatch_SaysThatTheSourceIsHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := roottest.FailedNight(t, demo.Bug{Class: "tax", Message: "no rate", Records: 20})
		at := kadm.Offsets{}
		field := commitmark.Guard{State: commitmark.Held, Since: time.Now().Add(-12 * time.Minute), Class: "bank.down"}.Field()
		at.Add(kadm.Offset{Topic: "orders", Partition: 1, LeaderEpoch: -1, Metadata: commitmark.Mark + " 1" + field})
		if err := kadm.NewClient(n.Producer).CommitAllOffsets(t.Context(), "mail", at); err != nil {
			t.Fatal(err)
		}
		out, stop := watching(t, n)
		time.Sleep(30 * time.Second)
		stop()
		if got := out.last(t); got.State != "held" || len(got.Guards) != 1 || got.Guards[0].Group != "mail" {
			t.Errorf("%+v", got)
		}
	})
}

// A topic of millions of letters was read at each tick. Nothing of it is read while nothing comes,
// and then no more than duplicates need.
func TestTail_KeepsItsPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := roottest.FailedNight(t, demo.Bug{Class: "tax", Message: "no rate", Records: 4})
		var records []*kgo.Record
		for range 5_000 {
			records = append(records, roottest.Letter("orders.dlq", 0, 0, headers.Meta{Class: "tax"}))
		}
		cl, err := kgo.NewClient(append(n.Producer.Opts(), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		if err := cl.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		out, stop := watching(t, n)
		time.Sleep(20 * time.Second)
		described, err := kadm.NewClient(cl).ListTopics(t.Context(), "orders.dlq")
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var offsets []int64
		n.Cluster.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
			mu.Lock()
			defer mu.Unlock()
			n.Cluster.KeepControl()
			for _, of := range req.(*kmsg.FetchRequest).Topics {
				for _, p := range of.Partitions {
					if of.TopicID == described["orders.dlq"].ID && p.Partition == 0 {
						offsets = append(offsets, p.FetchOffset)
					}
				}
			}
			return nil, nil, false
		})
		time.Sleep(10 * time.Minute)
		mu.Lock()
		if len(offsets) > 0 {
			t.Errorf("it read from %d while nothing came", offsets)
		}
		mu.Unlock()
		late := roottest.Letter("orders.dlq", 0, 0, headers.Meta{Class: "tax"})
		late.Timestamp = time.Now().Add(-3 * time.Hour) // by a slow clock
		if err := cl.ProduceSync(t.Context(), late).FirstErr(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		stop()
		mu.Lock()
		defer mu.Unlock()
		if len(offsets) == 0 || slices.Min(offsets) < 5_000-4_096 {
			t.Errorf("it read from %d, want the end, and a little before it", offsets)
		}
		if got := out.last(t); got.Open != 5_005 || got.Recent != 1 || got.State != "growing" {
			t.Errorf("%+v", got)
		}
	})
}

// A topic that is made again has other letters, in place of the old ones.
func TestTail_ForgetsARecreatedTopic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := roottest.FailedNight(t, demo.Bug{Class: "tax", Message: "no rate", Records: 40})
		out, stop := watching(t, n)
		time.Sleep(12 * time.Second)
		adm := kadm.NewClient(n.Producer)
		if _, err := adm.DeleteTopics(t.Context(), "orders.dlq"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		if got := out.last(t); got.Problem == nil || !strings.Contains(*got.Problem, "orders.dlq") || got.Open != 40 {
			t.Errorf("without the topic: %+v", got)
		}
		if _, err := adm.CreateTopic(t.Context(), 4, 1, nil, "orders.dlq"); err != nil {
			t.Fatal(err)
		}
		fail(t, n, "tax", 3)
		time.Sleep(2 * time.Minute)
		stop()
		if got := out.last(t); got.Problem != nil || got.Open != 3 {
			t.Errorf("with another one: %+v", got)
		}
	})
}

// Retention deletes letters, and a person discards others: both leave the count.
func TestTail_FollowsWhatBecomesOfLetters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := roottest.FailedNight(t, demo.Bug{Class: "tax", Message: "no rate", Records: 40}, demo.Bug{Class: "bank", Message: "no", Records: 20})
		out, stop := watching(t, n)
		time.Sleep(12 * time.Second)
		if code := n.Invoke(t.Context(), io.Discard, "discard", "orders.dlq", "--class", "bank", "--why", "x", "--yes"); code != cli.ExitDone {
			t.Fatal(code)
		}
		time.Sleep(12 * time.Second)
		if got := out.last(t); got.Open != 40 || got.Resolved != 20 || len(got.Groups) != 1 {
			t.Errorf("after a discard: %+v", got)
		}
		offsets, adm := kadm.Offsets{}, kadm.NewClient(n.Producer)
		ends, err := adm.ListEndOffsets(t.Context(), "orders.dlq")
		if err != nil {
			t.Fatal(err)
		}
		ends.Each(func(o kadm.ListedOffset) {
			offsets.Add(kadm.Offset{Topic: o.Topic, Partition: o.Partition, At: o.Offset})
		})
		if _, err := adm.DeleteRecords(t.Context(), offsets); err != nil {
			t.Fatal(err)
		}
		time.Sleep(12 * time.Second)
		stop()
		if got := out.last(t); got.State != "empty" || got.Open != 0 || got.Resolved != 0 {
			t.Errorf("after retention: %+v", got)
		}
	})
}

// A message quotes a card number, and the operator's screen is shared.
func TestWatch_HidesWhatIsRedacted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := roottest.FailedNight(t, demo.Bug{Class: "tax", Message: "card 4111111111111111", Records: 2})
		out := &written{}
		ctx, stop := context.WithTimeoutCause(t.Context(), 10*time.Second, cli.ErrInterrupted)
		defer stop()
		if code := n.Invoke(ctx, out, "watch", "orders.dlq", "--redact-pattern", `\d{13,19}`, "-o", "json"); code != cli.ExitDone {
			t.Errorf("exit code %d", code)
		}
		if got := out.last(t); got.Groups[0].Sample != "card [redacted]" {
			t.Errorf("%+v", got)
		}
	})
}

// Waiting cures no lack of a permission.
func TestWatch_EndsWithoutThePermission(t *testing.T) {
	t.Parallel()
	granted := roottest.DocumentedPermissions(t, 0)
	for i, missing := range granted {
		if missing.Operation == kmsg.ACLOperationRead && strings.HasPrefix(missing.Name, "orders.dlq") {
			got := roottest.Guarded(t, slices.Concat(granted[:i], granted[i+1:])).As("ann").Run(t, "watch", "orders.dlq")
			roottest.Prints(t, got, cli.ExitError, "", " on topic "+missing.Name+": have it granted")
		}
	}
}
