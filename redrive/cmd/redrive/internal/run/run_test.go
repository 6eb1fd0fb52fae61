package run_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/goccy/go-yaml"
	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/connect"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/demo"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

func TestRun_RedrivesAFixedClassAndRecordsIt(t *testing.T) {
	t.Parallel()
	roottest.Virtual(t, func(t *testing.T) {
		s := roottest.InTrouble(t)
		s.Fix("tax")
		got := s.Redrive(t, append([]string{"run", "orders.dlq", "--class", "tax", "--why", "OPS-1", "-o", "json"}, roottest.Fast...)...)
		o := roottest.OutcomeOf(t, got.Stdout)
		if got.Code != cli.ExitDone || o.State != "done" || o.Selected != 60 || o.Sent != 60 || o.Succeeded != 60 || o.Failed+o.Pending+o.Unknown != 0 || o.By != "oncall" || *o.Why != "OPS-1" || o.Ended == nil {
			t.Errorf("%+v", got)
		}
		roottest.InOrder(t, got.Stderr, "run "+o.Run+": 60 letters to orders.retry.1s", "canary: sending the first records", "the canary succeeded; sending\n", "all is sent")
		if strings.ContainsAny(got.Stderr, "\r\x1b") {
			t.Errorf("there is a bar without a terminal: %q", got.Stderr)
		}
		if records, calls := s.Processed(); records != 60 || calls != 60 {
			t.Errorf("%d were processed, in %d calls", records, calls)
		}
		if again := roottest.OutcomeOf(t, s.Redrive(t, "status", o.Run, "-o", "json").Stdout); again.Succeeded != 60 || again.State != "done" {
			t.Errorf("status: %+v", again)
		}
		if got := s.Redrive(t, "status", o.Run); !strings.Contains(got.Stdout, "SUCCEEDED     60\n") || strings.Contains(got.Stdout, "HEARTBEAT") || got.Stderr != "" {
			t.Errorf("status: %+v", got)
		}
		var listed []roottest.Outcome
		if err := json.Unmarshal([]byte(s.Redrive(t, "runs", "orders.dlq", "-o", "json").Stdout), &listed); err != nil || len(listed) != 1 || listed[0].Run != o.Run || listed[0].Succeeded != 60 {
			t.Errorf("runs: %+v, %v", listed, err)
		}
		if got := s.Redrive(t, "summary", "orders.dlq", "-o", "json"); !strings.Contains(got.Stdout, `"open":40,"pending":0,"resolved":60,`) || strings.Contains(got.Stdout, `"class":"tax"`) {
			t.Errorf("summary: %+v", got)
		}
		all := s.Redrive(t, "list", "orders.dlq", "--all", "--class", "tax", "--limit", "1", "-o", "jsonl")
		if got := s.Redrive(t, "show", "orders.dlq", roottest.Places(t, all)[0]); !strings.Contains(got.Stdout, "STATE         succeeded\n") || !strings.Contains(got.Stdout, "by oncall, to orders.retry.1s/") {
			t.Errorf("show: %+v", got)
		}
		// Whatever is left is of another class.
		roottest.Prints(t, s.Redrive(t, "run", "orders.dlq", "--class", "tax"), cli.ExitRefused, "", "redrive: orders.dlq: refused: nothing selected: ")
	})
}

// An operator forgot the filter, and the run took every letter of the topic.
func TestRun_AsksForTheNumberOfAllLetters(t *testing.T) {
	t.Parallel()
	roottest.Virtual(t, func(t *testing.T) {
		s := roottest.InTrouble(t)
		s.Fix("tax")
		s.Fix("payment")
		const question = "no flag chooses letters: all 100 letters of orders.dlq will be redriven, to orders.retry.1s; type 100 to continue:\n"
		for typed, message := range map[string]string{
			"":     "100 was not typed, nothing was done: --yes skips the question\n",
			"y\n":  `"y" is not 100, nothing was done`,
			"60\n": `"60" is not 100, nothing was done`,
		} {
			i := s.As()
			i.Stdin = typed
			got := i.Run(t, "run", "orders.dlq")
			roottest.Prints(t, got, cli.ExitRefused, "", message, typed)
			if !strings.HasPrefix(got.Stderr, question) {
				t.Errorf("it asks %q", got.Stderr)
			}
		}
		roottest.Prints(t, s.Redrive(t, "runs", "orders.dlq"), cli.ExitDone, "", "orders.dlq has no runs")
		// It is not asked about letters that were chosen, or with --yes.
		for _, args := range [][]string{{"--class", "tax", "--partition", "0"}, {"--class", "tax", "--yes"}, {"--max-redrives", "5", "--yes"}} {
			got := s.Redrive(t, slices.Concat([]string{"run", "orders.dlq"}, args, roottest.Fast)...)
			if got.Code != cli.ExitDone || strings.Contains(got.Stderr, "type ") {
				t.Errorf("%q: %+v", args, got)
			}
		}
		if records, _ := s.Processed(); records != 100 {
			t.Errorf("%d records were processed", records)
		}
	})
}

// The bank was not up yet. With the policy's attempts each letter would go through all retry topics
// again, and be a dead letter much later.
func TestRun_BoundsTheAttemptsOfItsCopies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := roottest.FailedNight(t, demo.Bug{Class: "payment", Message: "the bank is away", Records: 40, Retried: true})
		played := n.Play(`
    $ redrive plan orders.dlq --class payment --max-attempts 2
<!-- night: exits 3 -->
    $ redrive run orders.dlq --class payment --max-attempts 2 --canary 0 --rate 0 --tolerate 40,100% --window 1m
    $ redrive list orders.dlq --class payment --attempts 2 -o jsonl
    $ redrive list orders.dlq --class payment --attempts 3 -o jsonl
`)
		for part, want := range map[string]int{"--attempts 2 -o jsonl\n": 40, "--attempts 3 -o jsonl\n": 0} {
			_, list, _ := strings.Cut(played, part)
			list, _, _ = strings.Cut(list, "$ ")
			if got := strings.Count(list, `"class":"payment"`); got != want {
				t.Errorf("%d open letters with %s, want %d", got, part, want)
			}
		}
		roottest.InOrder(t, played, "MAX ATTEMPTS   2\n", "FAILED AGAIN  40\n")
	})
	for value, message := range map[string]string{"-1": "--max-attempts is -1: it is at least 1", "1000000000": "--max-attempts is 1000000000: it is at least 1", "two": `--max-attempts: "two" is not a whole number`} {
		roottest.Prints(t, roottest.Invocation{}.Run(t, "run", "orders.dlq", "--max-attempts="+value), cli.ExitUsage, "", message)
	}
}

// What retention took of a frozen selection is not sent, and the run counts it: it does not fail
// for it.
func TestRun_CountsLettersThatExpiredSince(t *testing.T) {
	t.Parallel()
	roottest.Virtual(t, func(t *testing.T) {
		s := roottest.InTrouble(t)
		o := s.InterruptedRun(t)
		for p := range int32(4) {
			s.DeleteTo(t, "orders.dlq", p, -1)
		}
		got := s.Redrive(t, "resume", o.Run, "-o", "json")
		end := roottest.OutcomeOf(t, got.Stdout)
		if got.Code != cli.ExitDone || end.State != "done" || end.Sent != o.Sent || end.Succeeded != o.Sent || end.Skipped["expired"] != 60-o.Sent {
			t.Errorf("%+v", got)
		}
		if records, calls := s.Processed(); records != int(o.Sent) || calls != records {
			t.Errorf("%d were processed, in %d calls", records, calls)
		}
		if got := s.Redrive(t, "status", o.Run); !strings.Contains(got.Stdout, "NOT SENT      ") || !strings.Contains(got.Stdout, " letters: expired\n") {
			t.Errorf("%+v", got)
		}
	})
}

func TestMain(m *testing.M) { roottest.RunTests(m) }

// job is the part of a Kubernetes Job by which it behaves.
type job struct {
	Kind string
	Spec struct {
		BackoffLimit *int `yaml:"backoffLimit"`
		Template     struct {
			Spec struct {
				RestartPolicy string `yaml:"restartPolicy"`
				Grace         int    `yaml:"terminationGracePeriodSeconds"`
				Containers    []struct {
					Command, Args []string
					Env           []struct{ Name, Value string }
				}
			}
		}
	}
}

// The Job in the examples was written by hand: a flag or a variable in it that is not there would
// be found at night.
func TestRun_AsADocumentedKubernetesJob(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	text, err := os.ReadFile("../../../../../examples/kubernetes/redrive-job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var j job
	if err := yaml.Unmarshal(text, &j); err != nil {
		t.Fatal(err)
	}
	pod := j.Spec.Template.Spec
	// after a crash a second pod would be refused, and hide why the first one ended
	if j.Kind != "Job" || j.Spec.BackoffLimit == nil || *j.Spec.BackoffLimit != 0 || pod.RestartPolicy != "Never" || pod.Grace < 45 || len(pod.Containers) != 1 {
		t.Fatalf("%+v", j)
	}
	known := []string{"SIDING_SASL_PASSWORD", "SIDING_SASL_TOKEN"}
	roottest.NewCommands().PersistentFlags().VisitAll(func(f *pflag.Flag) { known = append(known, connect.Variable(f.Name)) })
	for _, v := range pod.Containers[0].Env {
		if !slices.Contains(known, v.Name) {
			t.Errorf("the variable %s means nothing", v.Name)
		}
	}

	s := roottest.IncidentOf(t, demo.Bug{Class: "tax.TableMiss", Message: "no tax rate for region", Records: 30}, demo.Bug{Class: "payment", Message: "the bank said no", Records: 10})
	s.Fix("tax.TableMiss")
	if command := pod.Containers[0].Command; !slices.Equal(command, []string{"redrive"}) {
		t.Errorf("the command is %q", command)
	}
	got := s.Redrive(t, append(pod.Containers[0].Args, roottest.Fast...)...)
	o := roottest.OutcomeOf(t, got.Stdout)
	if got.Code != cli.ExitDone || o.State != "done" || o.Succeeded != 30 || *o.Why != "OPS-4711" || o.By != "oncall" {
		t.Errorf("%+v", got)
	}
}

// The pipe of `redrive run … 2>&1 | head -1` broke, and the signal killed the run like a crash. It
// goes on, and its exit code shows that its outcome was not printed.
func TestRun_GoesOnWithoutReaders(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	s := roottest.IncidentOn(t, nil, nil, demo.Bug{Class: "tax", Message: "no rate", Records: 20})
	s.Fix("tax")
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := roottest.Command(t.Context(), append([]string{"run", "orders.dlq", "--yes", "--brokers", s.Addr}, roottest.Fast...)...)
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	if first, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.HasPrefix(first, "run orders.dlq/") {
		t.Errorf("it says %q, %v", first, err)
	}
	out.Close()
	err = cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != cli.ExitError {
		t.Errorf("it ended by %v, want exit code %d", err, cli.ExitError)
	}
	roottest.Prints(t, s.Redrive(t, "runs", "orders.dlq", "-o", "json"), cli.ExitDone, `"state":"done"`, "")
}

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
	other := ledgerrecord.Run("orders.dlq.ledger", "r-1", []byte(`{"v":1,"id":"r-1","owner":"ada","state":"canary"}`))
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
