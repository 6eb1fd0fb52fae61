package run_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

// Each refusal has the same exit code, leaves everything as it was, and names the option that
// helps.
func TestRun_RefusesWhatShouldNotBegin(t *testing.T) {
	t.Parallel()
	s := roottest.InTrouble(t)
	s.Topic(t, "compacted", 4, map[string]string{"cleanup.policy": "compact"})
	s.Topic(t, "narrow", 1, nil)
	s.Topic(t, "short", 4, map[string]string{"retention.ms": "1"})
	m := func(group string, redrives int) headers.Meta {
		m := headers.Meta{Class: "x", Group: group, Attempts: 1, Original: headers.Position{Topic: "orders", Timestamp: clitest.Noon}}
		if redrives > 0 {
			m.Redrive = headers.Redrive{ID: "r-0", Count: redrives, From: headers.Position{Topic: "orders.dlq", Partition: 0, Offset: 7}}
		}
		return m
	}
	stranger, often, foreign := m("stranger", 0), m("billing", 3), m("", 0)
	stranger.Class, often.Class, foreign.Class = "stranger", "often", "foreign"
	s.Produce(t, roottest.Letter("orders.dlq", 0, 0, stranger), roottest.Letter("orders.dlq", 0, 0, often), roottest.Letter("orders.dlq", 0, 0, foreign))
	// A group that has a tier, and no members.
	gone := m("gone", 0)
	gone.Class = "gone"
	s.Produce(t, roottest.Letter("orders.dlq", 0, 0, gone))
	s.Commit(t, "gone", "orders.retry.1s", 0, 0)
	before := s.Exported(t)
	for _, c := range []struct{ args, reason, message, remedy string }{
		{"--class pyament", "nothing selected", "no open letter fits", "redrive summary orders.dlq shows what is open\n"},
		{"--class tax --since 1ms", "nothing selected", "no open letter fits", "redrive summary orders.dlq shows what is open\n"},
		{"--class foreign", "nothing selected", "none names its group", "redrive summary orders.dlq shows what is open; --target accepts letters that name no group\n"},
		{"--class stranger", "no tier", "group stranger on partition 0", "--target names"},
		{"--class often", "too many redrives", "1 letter fits", "--max-redrives raises"},
		{"--class payment --patch {}", "edit failed", "40 letters fit, and the edit can't be applied to any value: change the edit; the first error: letter orders.dlq/", "redrive show orders.dlq P:OFFSET shows"},
		{"--class tax --target compacted", "compacted target", "compacted is compacted", "--force redrives"},
		{"--class tax --partition 1 --target narrow", "too few partitions", "letters fit, and narrow has no partition beyond 0, and orders.dlq/1/0 needs one; add partitions to it, choose another target, or discard them", "--target names"},
		{"--class tax --target nowhere", "no target", "the topic nowhere does not exist: create it, or choose another one", "--target names"},
		{"--class tax --target orders.dlq", "no target", "orders.dlq is the dlq topic of orders by its name", "--target names"},
		{"--class tax --target orders.dlq.ledger", "no target", "orders.dlq.ledger is the ledger topic of orders by its name", "--target names"},
		{"--class tax --target orders.retry.1s --keep-timestamp", "no target", "orders.retry.1s is a retry topic, whose records keep their timestamp", "--target names"},
		{"--class tax --value-file " + roottest.Save(t, "{}"), "too many letters", "a new value is for one letter, and 60 are selected", "--offset P:OFFSET chooses one, as redrive list orders.dlq prints them"},
		{"--class tax --target short --keep-timestamp", "retention", "short keeps records for 1ms", "omit --keep-timestamp"},
	} {
		for _, verb := range []string{"plan", "run"} {
			got := s.Redrive(t, append([]string{verb, "orders.dlq"}, strings.Fields(c.args)...)...)
			if got.Code != cli.ExitRefused || got.Stdout != "" || !strings.HasPrefix(got.Stderr, "redrive: orders.dlq: refused: "+c.reason+": ") ||
				!strings.Contains(got.Stderr, c.message) || !strings.Contains(got.Stderr, "\n  "+c.remedy) {
				t.Errorf("%s %s: %+v", verb, c.args, got)
			}
		}
	}
	if after := s.Exported(t); !slices.Equal(after, before) {
		t.Error("something was done")
	}
	// A plan is whole without the group, and shows what a run would do.
	absent := "no consumer would run the records: gone without members; "
	roottest.Prints(t, s.Redrive(t, "plan", "orders.dlq", "--class", "gone"), cli.ExitDone, "LETTERS        1\nTARGET         orders.retry.1s\n", "warning: "+absent+"a run is refused until they are there, unless it waits\n")
	roottest.Prints(t, s.Redrive(t, "run", "orders.dlq", "--class", "gone"), cli.ExitRefused, "", "redrive: orders.dlq: refused: no members: "+absent+"start the consumer, or let the run wait for it\n  --wait waits")
	roottest.Prints(t, s.Redrive(t, "runs", "orders.dlq"), cli.ExitDone, "", "orders.dlq has no runs")
	// Each of them is a question of the option.
	for _, args := range []string{
		"--class often --max-redrives 4", "--class often --max-redrives 0", "--class gone --wait", "--class tax --target compacted --force", "--class tax --target narrow", "--class tax --target short", "--class foreign --target orders --wait",
	} {
		if got := s.Redrive(t, append([]string{"plan", "orders.dlq"}, strings.Fields(args)...)...); got.Code != cli.ExitDone || got.Stdout == "" {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

// Of two operators who begin at the same time both have plans, and only one has a run.
func TestRun_RefusedAsItBeginsHasNoName(t *testing.T) {
	t.Parallel()
	s := roottest.InTrouble(t)
	other := dlq.RunRecord("orders.dlq.ledger", "r-1", []byte(`{"v":1,"id":"r-1","owner":"ada","state":"canary"}`))
	var once sync.Once
	s.ControlKey(int16(kmsg.InitProducerID), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		s.KeepControl()
		// the plan is made, and the claim begins
		if kreq.(*kmsg.InitProducerIDRequest).TransactionalID != nil {
			s.SleepControl(func() { once.Do(func() { s.Produce(t, other) }) })
		}
		return nil, nil, false
	})
	got := s.Redrive(t, "run", "orders.dlq", "--class", "tax")
	if got.Code != cli.ExitRefused || got.Stdout != "" || !strings.HasPrefix(got.Stderr, "redrive: orders.dlq: refused: unfinished run: run orders.dlq/r-1 of ada is canary") {
		t.Errorf("%+v", got)
	}
}

// Two verbs that write at the same time would double letters, take new ones for failures, or delete
// what is about to be read.
func TestRun_UnfinishedKeepsOtherVerbsOut(t *testing.T) {
	t.Parallel()
	roottest.Virtual(t, func(t *testing.T) {
		s := roottest.InTrouble(t)
		o := s.InterruptedRun(t)
		before := s.Exported(t)
		file := roottest.Save(t, strings.Join(before, ""))
		for _, args := range [][]string{
			{"run", "orders.dlq"},
			{"plan", "orders.dlq", "--class", "payment"},
			{"discard", "orders.dlq", "--why", "x", "--yes"},
			{"prune", "orders.dlq", "--yes"},
			{"prune", "orders.dlq", "--older-than", "1ms", "--yes", "--archive", file + ".archive"},
			{"import", "orders.dlq", file},
		} {
			got := s.Redrive(t, args...)
			want := "redrive: orders.dlq: refused: unfinished run: run " + o.Run + " of oncall on "
			if got.Code != cli.ExitRefused || got.Stdout != "" || !strings.HasPrefix(got.Stderr, want) || !strings.Contains(got.Stderr, " was stopped at ") || !strings.Contains(got.Stderr, "\n  redrive resume "+o.Run+" continues it, redrive abort "+o.Run+" ends it\n") {
				t.Errorf("%q: %+v", args, got)
			}
		}
		if after := s.Exported(t); !slices.Equal(after, before) {
			t.Errorf("something was done: %q became %q", before, after)
		}
		if _, err := os.Stat(file + ".archive"); err == nil {
			t.Error("there is an archive")
		}
		if got := s.Redrive(t, "abort", o.Run, "--why", "OPS-2"); got.Code != cli.ExitDone || !strings.Contains(got.Stdout, "STATE         aborted\nCAUSE         aborted by oncall on ") || !strings.Contains(got.Stdout, ": OPS-2\n") ||
			!strings.Contains(got.Stderr, fmt.Sprintf("not sent, still open: %d letters\n", 60-o.Sent)) || strings.Contains(got.Stderr, "still active") {
			t.Errorf("abort: %+v", got)
		}
		roottest.Prints(t, s.Redrive(t, "discard", "orders.dlq", "--class", "payment", "--why", "x", "--yes"), cli.ExitDone, "DISCARDED  40\n", "")
	})
}

// A run to the source warned that another group gets the records again, and sent them at once.
func TestRun_AsksWhereOtherGroupsProcessTheRecordsAgain(t *testing.T) {
	t.Parallel()
	roottest.Virtual(t, func(t *testing.T) {
		s := roottest.InTrouble(t)
		s.Fix("tax")
		run := append([]string{"run", "orders.dlq", "--class", "tax", "--target", "orders"}, roottest.Fast...)
		roottest.Prints(t, s.Redrive(t, run...), cli.ExitDone, "done\n", "60 letters to orders", "only the group that failed reads the source")
		s.Commit(t, "audit", "orders", 0, 0)
		s.Fix("payment")
		run = append([]string{"run", "orders.dlq", "--class", "payment", "--target", "orders"}, roottest.Fast...)
		const question = "letters will be processed again on orders by groups that did not fail: audit; type "
		got := s.Redrive(t, run...)
		roottest.Prints(t, got, cli.ExitRefused, "", question, "nobody answers")
		if records, _ := s.Processed(); records != 60 {
			t.Errorf("%d records were processed: it sent some", records)
		}
		roottest.Prints(t, s.Redrive(t, append(run, "--yes")...), cli.ExitDone, "done\n", "40 letters to orders")
	})
}
