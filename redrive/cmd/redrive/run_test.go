package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

// service is an incident whose records are dead letters, and the tests' way to its broker.
type service struct {
	*broker
	*incident
}

// inTrouble has 60 dead letters with a tax bug and 40 with a payment bug, of group billing.
func inTrouble(t *testing.T) *service {
	t.Helper()
	i, err := startIncident(bug{"tax", "no rate", 60}, bug{"payment", "the bank said no", 40})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.stop)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := i.fail(ctx); err != nil {
		t.Fatal(err)
	}
	b := &broker{Cluster: i.cluster, addr: i.broker}
	return &service{b.open(t), i}
}

// as is how commands are started on the service's broker, at the real time.
func (s *service) as() invocation {
	return invocation{env: map[string]string{"SIDING_BROKERS": s.addr}, now: time.Now}
}

// fast is a pace at which a run is over in some seconds.
var fast = []string{"--rate", "0", "--ramp", "0", "--window", "2s"}

func (s *service) redrive(t *testing.T, args ...string) result {
	t.Helper()
	return s.as().run(t, args...)
}

// outcome is what -o json says of a run.
type outcome struct {
	Run, State, By, Owner                      string
	Why, Cause                                 *string
	Selected, Sent, Succeeded, Failed, Pending int64
	FailedByClass, Skipped                     map[string]int64
	Ended                                      *string
	Heartbeat, Started                         string
	Discarded, Unknown, Retrying               int64
}

func outcomeOf(t *testing.T, text string) (o outcome) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return o
}

func TestPlanSaysWhatARunWouldDoAndDoesNothing(t *testing.T) {
	t.Parallel()
	s := inTrouble(t)
	type share struct {
		Letters             int64
		Topic, Class, Group string
		Partition           int32
	}
	var p struct {
		Topic                                string
		Letters                              int64
		SeenBy, Watched, Warnings            []string
		SendingMs                            *int64
		Skipped                              map[string]int64
		Targets, Classes, Partitions, Groups []share
	}
	got := s.redrive(t, "plan", "orders.dlq", "-o", "json", "--rate", "10", "--ramp", "0")
	if err := json.Unmarshal([]byte(got.stdout), &p); err != nil || got.code != exitDone || got.stderr != "" {
		t.Fatalf("%+v: %v", got, err)
	}
	if p.Topic != "orders.dlq" || p.Letters != 100 || fmt.Sprint(p.SeenBy) != "[billing]" || fmt.Sprint(p.Watched) != "[orders.retry.1s orders.retry.5s]" || p.SendingMs == nil || *p.SendingMs != 10_000 || p.Warnings == nil ||
		!slices.Equal(p.Targets, []share{{Letters: 100, Topic: "orders.retry.1s"}}) || !slices.Equal(p.Groups, []share{{Letters: 100, Group: "billing"}}) ||
		!slices.Equal(p.Classes, []share{{Letters: 60, Class: "tax"}, {Letters: 40, Class: "payment"}}) {
		t.Errorf("the plan is %+v", p)
	}
	if got := s.redrive(t, "plan", "orders.dlq", "-o", "json", "--rate", "0"); !strings.Contains(got.stdout, `"sendingMs":null,"skipped":{},`) {
		t.Errorf("without a limit: %+v", got)
	}
	var sum int64
	for _, of := range p.Partitions {
		sum += of.Letters
	}
	if sum != 100 {
		t.Errorf("partitions have %+v", p.Partitions)
	}
	got = s.redrive(t, "plan", "orders.dlq", "--class", "tax", "--target", "orders", "--wait")
	for _, want := range []string{"LETTERS        60\n", "TARGET         orders\n", "SEEN BY        billing\n", "WATCHED        orders.retry.1s, orders.retry.5s\n", "SENDING TAKES  6s at 50/s\n", "LETTERS  CLASS\n     60  tax\n", "LETTERS  PARTITION\n"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("the table does not say %q:\n%s", want, got.stdout)
		}
	}
	if strings.Contains(got.stdout, "EDITED") {
		t.Errorf("nothing is edited:\n%s", got.stdout)
	}
	const nothing = `"edited":{"value":null,"setHeaders":[],"unsetHeaders":[]}`
	for _, c := range []struct {
		flags       []string
		table, json string
	}{
		{nil, "", nothing},
		{[]string{"--set-header", "region=eu", "--unset-header", "trace"}, "EDITED         headers region, trace\n", `"edited":{"value":null,"setHeaders":["region"],"unsetHeaders":["trace"]}`},
		{[]string{"--value-file", save(t, "x"), "--offset", "0:0"}, "EDITED         value (new)\n", `"edited":{"value":"new","setHeaders":[],"unsetHeaders":[]}`},
	} {
		for format, want := range map[string]string{"table": c.table, "json": c.json} {
			got := s.redrive(t, append([]string{"plan", "orders.dlq", "-o", format}, c.flags...)...)
			if got.code != exitDone || !strings.Contains(got.stdout, want) {
				t.Errorf("%q: %+v, want %s", c.flags, got, want)
			}
		}
	}
	e := redrive.Edit{Patch: []byte("{}"), Set: []kgo.RecordHeader{{Key: "b"}, {Key: "a"}, {Key: "a"}}}
	if got := editText(e).Cell.(output.Pair).Table; got != "value (patch), headers a, b" {
		t.Errorf("a patch and headers are %q", got)
	}
	for _, f := range output.Formats {
		got := s.redrive(t, "runs", "orders.dlq", "-o", f)
		want := map[string]string{"json": "[]\n"}[f]
		if got.code != exitDone || got.stdout != want || got.stderr != "orders.dlq has no runs, or its ledger no longer has them\n" {
			t.Errorf("runs: %+v", got)
		}
	}
}

func TestAFixedClassComesBackAndStaysTold(t *testing.T) {
	t.Parallel()
	s := inTrouble(t)
	s.fix("tax")
	got := s.redrive(t, append([]string{"run", "orders.dlq", "--class", "tax", "--why", "OPS-1", "-o", "json"}, fast...)...)
	o := outcomeOf(t, got.stdout)
	if got.code != exitDone || o.State != "done" || o.Selected != 60 || o.Sent != 60 || o.Succeeded != 60 || o.Failed+o.Pending+o.Unknown != 0 || o.By != "oncall" || *o.Why != "OPS-1" || o.Ended == nil {
		t.Errorf("%+v", got)
	}
	for _, want := range []string{"run " + o.Run + ": 60 letters to orders.retry.1s", "canary: sending the first records", "the canary succeeded; sending\n", "all is sent"} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("it does not say %q: %s", want, got.stderr)
		}
	}
	if strings.ContainsAny(got.stderr, "\r\x1b") {
		t.Errorf("there is a bar without a terminal: %q", got.stderr)
	}
	if once, more := s.processed(); once != 60 || more != 0 {
		t.Errorf("%d were processed once, %d more often", once, more)
	}
	if again := outcomeOf(t, s.redrive(t, "status", o.Run, "-o", "json").stdout); again.Succeeded != 60 || again.State != "done" {
		t.Errorf("status: %+v", again)
	}
	if got := s.redrive(t, "status", o.Run); !strings.Contains(got.stdout, "SUCCEEDED     60\n") || strings.Contains(got.stdout, "HEARTBEAT") || got.stderr != "" {
		t.Errorf("status: %+v", got)
	}
	var listed []outcome
	if err := json.Unmarshal([]byte(s.redrive(t, "runs", "orders.dlq", "-o", "json").stdout), &listed); err != nil || len(listed) != 1 || listed[0].Run != o.Run || listed[0].Succeeded != 60 {
		t.Errorf("runs: %+v, %v", listed, err)
	}
	if got := s.redrive(t, "summary", "orders.dlq", "-o", "json"); !strings.Contains(got.stdout, `"open":40,"resolved":60,`) || strings.Contains(got.stdout, `"class":"tax"`) {
		t.Errorf("summary: %+v", got)
	}
	all := s.redrive(t, "list", "orders.dlq", "--all", "--class", "tax", "--limit", "1", "-o", "jsonl")
	if got := s.redrive(t, "show", "orders.dlq", places(t, all)[0]); !strings.Contains(got.stdout, "STATE         succeeded\n") || !strings.Contains(got.stdout, "by oncall, to orders.retry.1s/") {
		t.Errorf("show: %+v", got)
	}
	// Whatever is left is of another class.
	if got := s.redrive(t, "run", "orders.dlq", "--class", "tax"); got.code != exitRefused || got.stdout != "" {
		t.Errorf("once more: %+v", got)
	}
}

func TestAClassThatFailsAgainAbortsWithItsCode(t *testing.T) {
	t.Parallel()
	s := inTrouble(t)
	got := s.redrive(t, append([]string{"run", "orders.dlq", "--class", "payment", "-o", "jsonl"}, fast...)...)
	o := outcomeOf(t, got.stdout)
	if got.code != exitFailedAgain || o.State != "aborted" || o.Sent != 1 || o.Cause == nil || !strings.Contains(*o.Cause, "failed again with payment") {
		t.Errorf("%+v", got)
	}
	for _, want := range []string{"not sent, still open: 39 letters\nfailures:\n  letter orders.dlq/", ": payment: the bank said no\n    redrive show orders.dlq ", "redrive: " + o.Run + " aborted: letter orders.dlq/"} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("it does not say %q: %s", want, got.stderr)
		}
	}
	// The letter is open again: it came back as a new one.
	if got := s.redrive(t, "summary", "orders.dlq", "-o", "json"); !strings.Contains(got.stdout, `"open":100,"resolved":1,`) {
		t.Errorf("summary: %+v", got)
	}
}

// interruptedRun is a run that was stopped by Ctrl-C while it sent.
func (s *service) interruptedRun(t *testing.T) outcome {
	t.Helper()
	s.fix("tax")
	ctx, stop := context.WithCancelCause(t.Context())
	i := s.as()
	i.heard = func(words string) {
		if strings.HasPrefix(words, "the canary succeeded") {
			time.AfterFunc(500*time.Millisecond, func() { stop(errInterrupted) })
		}
	}
	got := i.in(ctx, t, "run", "orders.dlq", "--class", "tax", "--rate", "20", "--ramp", "0", "--window", "2s", "-o", "json")
	o := outcomeOf(t, got.stdout)
	want := fmt.Sprintf("the run is unfinished: redrive resume %s continues it, redrive abort %s ends it\nredrive: interrupted\n", o.Run, o.Run)
	if got.code != exitError || o.State != "sending" || o.Sent == 0 || o.Sent == o.Selected || o.Ended != nil || !strings.HasSuffix(got.stderr, want) {
		t.Fatalf("%+v", got)
	}
	return o
}

func TestARunThatWasInterruptedGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	s := inTrouble(t)
	o := s.interruptedRun(t)
	i := s.as()
	i.now = func() time.Time { return time.Now().Add(time.Hour) }
	for _, args := range [][]string{{"status", o.Run}, {"runs", "orders.dlq"}} {
		if got := i.run(t, args...); got.code != exitDone || !strings.Contains(got.stderr, "warning: run "+o.Run+" is unfinished (it was stopped at ") || !strings.Contains(got.stderr, "Z, and waits to be resumed or aborted), and oncall on ") || !strings.Contains(got.stderr, "redrive resume "+o.Run+" continues it") {
			t.Errorf("%q: %+v", args, got)
		}
	}
	got := s.redrive(t, "resume", o.Run, "--by", "ada", "-o", "json")
	end := outcomeOf(t, got.stdout)
	if got.code != exitDone || end.State != "done" || end.Succeeded != 60 || end.By != "oncall" || !strings.HasPrefix(end.Owner, "ada on ") {
		t.Errorf("%+v", got)
	}
	if !strings.HasPrefix(got.stderr, fmt.Sprintf("run %s: %d of 60 letters were sent\n", o.Run, o.Sent)) {
		t.Errorf("it says %s", got.stderr)
	}
	if once, more := s.processed(); once != 60 || more != 0 {
		t.Errorf("%d were processed once, %d more often", once, more)
	}
	if got := s.redrive(t, "resume", o.Run); got.code != exitError || !strings.Contains(got.stderr, "is done: there is nothing to resume") {
		t.Errorf("once more: %+v", got)
	}
}

// Two who write at the same time would double letters, take new ones for failures, or delete what is about to be read.
func TestWhileARunIsUnfinishedNothingElseIsDone(t *testing.T) {
	t.Parallel()
	s := inTrouble(t)
	o := s.interruptedRun(t)
	exported := func() []string { // partitions come in any order
		return slices.Sorted(strings.Lines(s.redrive(t, "export", "orders.dlq").stdout))
	}
	before := exported()
	file := save(t, strings.Join(before, ""))
	for _, args := range [][]string{
		{"run", "orders.dlq"},
		{"plan", "orders.dlq", "--class", "payment"},
		{"discard", "orders.dlq", "--why", "x", "--yes"},
		{"prune", "orders.dlq"},
		{"prune", "orders.dlq", "--older-than", "1ms", "--yes", "--archive", file + ".archive"},
		{"import", "orders.dlq", file},
	} {
		got := s.redrive(t, args...)
		want := "redrive: orders.dlq: refused: unfinished run: run " + o.Run + " of oncall on "
		if got.code != exitRefused || got.stdout != "" || !strings.HasPrefix(got.stderr, want) || !strings.Contains(got.stderr, " was stopped at ") || !strings.Contains(got.stderr, "\n  redrive resume "+o.Run+" continues it, redrive abort "+o.Run+" ends it\n") {
			t.Errorf("%q: %+v", args, got)
		}
	}
	if after := exported(); !slices.Equal(after, before) {
		t.Errorf("something was done: %q became %q", before, after)
	}
	if _, err := os.Stat(file + ".archive"); err == nil {
		t.Error("there is an archive")
	}
	if got := s.redrive(t, "abort", o.Run, "--why", "OPS-2"); got.code != exitDone || !strings.Contains(got.stdout, "STATE         aborted\nCAUSE         aborted by oncall on ") || !strings.Contains(got.stdout, ": OPS-2\n") ||
		!strings.Contains(got.stderr, fmt.Sprintf("not sent, still open: %d letters\n", 60-o.Sent)) || strings.Contains(got.stderr, "still active") {
		t.Errorf("abort: %+v", got)
	}
	if got := s.redrive(t, "discard", "orders.dlq", "--class", "payment", "--why", "x", "--yes"); got.code != exitDone {
		t.Errorf("discard: %+v", got)
	}
}

// Whoever is asked may take a while; what began meanwhile counts.
func TestARunThatBeginsWhileSomebodyTypesIsSeen(t *testing.T) {
	t.Parallel()
	b := aftermath(t)
	for _, args := range [][]string{{"discard", "orders.dlq", "--why", "x"}, {"prune", "orders.dlq", "--older-than", "1h"}} {
		run := func(state string) *kgo.Record {
			return dlq.RunRecord("orders.dlq.ledger", "r-1", []byte(`{"v":1,"id":"r-1","owner":"ada","state":"`+state+`"}`))
		}
		i := invocation{env: map[string]string{"SIDING_BROKERS": b.addr}, stdin: "5\n"}
		if args[0] == "prune" {
			i.stdin = "4\n"
		}
		i.typed = func() { b.produce(t, run("canary")) }
		before := b.openLetters(t)
		got := i.run(t, args...)
		if got.code != exitRefused || got.stdout != "" || !strings.Contains(got.stderr, "run orders.dlq/r-1 of ada is canary") {
			t.Errorf("%q: %+v", args, got)
		}
		b.produce(t, run("done"))
		b.wantOpen(t, before)
	}
}

// whileSending runs the letters of tax at a rate, and does something else once the canary
// succeeded.
func (s *service) whileSending(t *testing.T, rate string, do func(run string)) result {
	t.Helper()
	done := make(chan struct{})
	i, name := s.as(), ""
	i.heard = func(words string) {
		if id, ok := strings.CutPrefix(words, "run "); ok {
			name, _, _ = strings.Cut(id, ":")
		}
		if strings.HasPrefix(words, "the canary succeeded") {
			go func() {
				defer close(done)
				do(name)
			}()
		}
	}
	got := i.run(t, "run", "orders.dlq", "--class", "tax", "--rate", rate, "--ramp", "0", "--window", "2s", "-o", "json")
	<-done
	return got
}

func TestAbortEndsARunThatGoesOnElsewhere(t *testing.T) {
	t.Parallel()
	s := inTrouble(t)
	s.fix("tax")
	var aborted result
	var name string
	got := s.whileSending(t, "20", func(run string) {
		name, aborted = run, s.redrive(t, "abort", run, "-o", "json")
	})
	o := outcomeOf(t, aborted.stdout)
	if aborted.code != exitDone || o.State != "aborted" || o.Sent == o.Selected || !strings.Contains(aborted.stderr, "the run was still active: oncall on ") ||
		!strings.Contains(aborted.stderr, fmt.Sprintf("\nnot sent, still open: %d letters\n", o.Selected-o.Sent)) {
		t.Errorf("abort: %+v", aborted)
	}
	// The one who lost it says so, and how it stands now.
	if o := outcomeOf(t, got.stdout); got.code != exitError || o.State != "aborted" || !strings.Contains(got.stderr, ": it was aborted by oncall on ") ||
		strings.Contains(got.stderr, "unfinished") || strings.Contains(got.stderr, "EPOCH") || strings.Count(got.stderr, "canary: ") != 1 {
		t.Errorf("run: %+v", got)
	}
	if got := s.redrive(t, "abort", name); got.code != exitDone || got.stderr != "run "+name+" had already ended, and nothing was changed\n" {
		t.Errorf("once more: %+v", got)
	}
}

// Whoever is refused for a colleague's run must not be led to end it, and takes it only knowing whose it is.
func TestARunThatGoesOnIsNotTakenUnasked(t *testing.T) {
	t.Parallel()
	s := inTrouble(t)
	s.fix("tax")
	var beaten, refused, unasked, took result
	var name string
	lost := s.whileSending(t, "20", func(run string) {
		name = run
		refused = s.redrive(t, "plan", "orders.dlq")
		beaten = s.redrive(t, "run", "orders.dlq")
		unasked = s.redrive(t, "resume", name)
		knowing := s.as()
		knowing.stdin = "yes\n"
		took = knowing.run(t, "resume", name, "--by", "ada", "-o", "json")
	})
	if refused.code != exitRefused || !strings.Contains(refused.stderr, "s ago: wait until it ends\n  redrive status "+name+" shows how far it is\n") || strings.Contains(refused.stderr, "resume") {
		t.Errorf("plan: %+v", refused)
	}
	if beaten.code != exitRefused || !strings.HasPrefix(beaten.stderr, "redrive: orders.dlq: refused: unfinished run: run "+name) {
		t.Errorf("run: %+v", beaten)
	}
	asks := "run " + name + " is running: the last heartbeat of oncall on "
	if unasked.code != exitRefused || !strings.HasPrefix(unasked.stderr, asks) || !strings.Contains(unasked.stderr, "s ago, and would lose the run; type yes to continue:\nredrive: yes was not typed, nothing was done: --yes skips the question\n") {
		t.Errorf("resume unasked: %+v", unasked)
	}
	if o := outcomeOf(t, took.stdout); took.code != exitDone || o.Succeeded != 60 || !strings.HasPrefix(o.Owner, "ada on ") || !strings.HasPrefix(took.stderr, asks) {
		t.Errorf("resume: %+v", took)
	}
	if lost.code != exitError {
		t.Errorf("run: %+v", lost)
	}
}

// Two who begin at the same time have plans both, and only one has a run.
func TestARunThatIsRefusedAsItBeginsHasNoName(t *testing.T) {
	t.Parallel()
	s := inTrouble(t)
	other := dlq.RunRecord("orders.dlq.ledger", "r-1", []byte(`{"v":1,"id":"r-1","owner":"ada","state":"canary"}`))
	var once sync.Once
	s.ControlKey(int16(kmsg.InitProducerID), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		s.KeepControl()
		if kreq.(*kmsg.InitProducerIDRequest).TransactionalID != nil { // the plan is made, and the claim begins
			s.SleepControl(func() { once.Do(func() { s.produce(t, other) }) })
		}
		return nil, nil, false
	})
	got := s.redrive(t, "run", "orders.dlq", "--class", "tax")
	if got.code != exitRefused || got.stdout != "" || !strings.HasPrefix(got.stderr, "redrive: orders.dlq: refused: unfinished run: run orders.dlq/r-1 of ada is canary") {
		t.Errorf("%+v", got)
	}
}
