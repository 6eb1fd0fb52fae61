package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

// Each refusal has the same exit code, leaves everything as it was, and names the option that helps.
func TestARunThatShouldNotBeginIsRefused(t *testing.T) {
	t.Parallel()
	s := inTrouble(t)
	s.topic(t, "compacted", 4, map[string]string{"cleanup.policy": "compact"})
	s.topic(t, "narrow", 1, nil)
	s.topic(t, "short", 4, map[string]string{"retention.ms": "1"})
	m := func(group string, redrives int) headers.Meta {
		m := headers.Meta{Class: "x", Group: group, Attempts: 1, Original: headers.Position{Topic: "orders", Timestamp: noon}}
		if redrives > 0 {
			m.Redrive = headers.Redrive{ID: "r-0", Count: redrives, From: headers.Position{Topic: "orders.dlq", Partition: 0, Offset: 7}}
		}
		return m
	}
	stranger, often, foreign := m("stranger", 0), m("billing", 3), m("", 0)
	stranger.Class, often.Class, foreign.Class = "stranger", "often", "foreign"
	s.produce(t, letter("orders.dlq", 0, 0, stranger), letter("orders.dlq", 0, 0, often), letter("orders.dlq", 0, 0, foreign))
	// A group that has a tier, and no members.
	gone := m("gone", 0)
	gone.Class = "gone"
	s.produce(t, letter("orders.dlq", 0, 0, gone))
	s.commit(t, "gone", "orders.retry.1s", 0, 0)
	exported := func() []string { // partitions come as they are fetched
		return slices.Sorted(strings.Lines(s.redrive(t, "export", "orders.dlq").stdout))
	}
	before := exported()
	for _, c := range []struct{ args, reason, says, remedy string }{
		{"--class pyament", "nothing selected", "no open letter fits", "redrive summary orders.dlq shows what is open\n"},
		{"--class tax --since 1ms", "nothing selected", "no open letter fits", "redrive summary orders.dlq shows what is open\n"},
		{"--class foreign", "nothing selected", "none names its group", "redrive summary orders.dlq shows what is open; --target accepts letters that name no group\n"},
		{"--class stranger", "no tier", "group stranger on partition 0", "--target names"},
		{"--class often", "too many redrives", "1 letter fits", "--max-redrives raises"},
		{"--class payment --patch {}", "edit failed", "40 letters fit, and the edit can't be applied to the value of any; the first: letter orders.dlq/", "redrive show orders.dlq P:OFFSET shows"},
		{"--class gone", "no members", "gone without members", "--wait waits"},
		{"--class tax --target compacted", "compacted source", "compacted is compacted", "--force redrives"},
		{"--class tax --target narrow", "too few partitions", "narrow has 1 partitions", "--target names"},
		{"--class tax --target nowhere", "no target", "the topic nowhere does not exist: create it, or choose another one", "--target names"},
		{"--class tax --target orders.dlq", "no target", "orders.dlq is the dlq topic of orders by its name", "--target names"},
		{"--class tax --target orders.dlq.ledger", "no target", "orders.dlq.ledger is the ledger topic of orders by its name", "--target names"},
		{"--class tax --target orders.retry.1s --keep-timestamp", "no target", "orders.retry.1s is a retry topic, whose records keep their timestamp", "--target names"},
		{"--class tax --value-file " + save(t, "{}"), "too many letters", "a new value is for one letter, and 60 are selected", "--offset P:OFFSET chooses one, as redrive list orders.dlq prints them"},
		{"--class tax --target short --keep-timestamp", "retention", "short keeps records for 1ms", "omit --keep-timestamp"},
	} {
		for _, verb := range []string{"plan", "run"} {
			got := s.redrive(t, append([]string{verb, "orders.dlq"}, strings.Fields(c.args)...)...)
			if got.code != exitRefused || got.stdout != "" || !strings.HasPrefix(got.stderr, "redrive: orders.dlq: refused: "+c.reason+": ") ||
				!strings.Contains(got.stderr, c.says) || !strings.Contains(got.stderr, "\n  "+c.remedy) {
				t.Errorf("%s %s: %+v", verb, c.args, got)
			}
		}
	}
	if after := exported(); !slices.Equal(after, before) {
		t.Error("something was done")
	}
	if got := s.redrive(t, "runs", "orders.dlq"); got.stdout != "" {
		t.Errorf("there are runs: %+v", got)
	}
	// Each of them is a question of the option.
	for _, args := range []string{
		"--class often --max-redrives 4", "--class often --max-redrives 0", "--class gone --wait", "--class tax --target compacted --force", "--class tax --target short", "--class foreign --target orders --wait",
	} {
		if got := s.redrive(t, append([]string{"plan", "orders.dlq"}, strings.Fields(args)...)...); got.code != exitDone || got.stdout == "" {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

// Every verb that takes a topic says the same of one that is not there, or that is not a
// dead-letter topic, and does nothing.
func TestATopicThatIsNoneIsTold(t *testing.T) {
	t.Parallel()
	b := aftermath(t)
	for verb, more := range map[string][]string{
		"summary": nil, "list": nil, "show": {"0:0"}, "discard": {"--why", "x", "--yes"}, "export": nil, "import": {save(t, "")}, "prune": nil, "plan": nil, "run": nil, "runs": nil,
		"status": nil, "abort": nil, "resume": nil,
	} {
		for topic, want := range map[string]struct {
			code int
			says string
		}{
			"order.dlq": {exitError, "redrive: topic order.dlq does not exist: there is orders.dlq\n"},
			"orders":    {exitUsage, "redrive: orders is not a dead-letter topic by the naming {topic}.dlq (--dlq-name sets another); did you mean orders.dlq?\n"},
		} {
			if verb == "status" || verb == "abort" || verb == "resume" {
				topic += "/20260102-150405-a1b2c3"
			}
			got := b.redrive(t, append([]string{verb, topic}, more...)...)
			if got.code != want.code || got.stdout != "" || !strings.HasPrefix(got.stderr, want.says) {
				t.Errorf("%s %s: %+v, want %+v", verb, topic, got, want)
			}
		}
	}
	for _, verb := range []string{"status", "abort", "resume"} {
		if got := b.redrive(t, verb, "orders.dlq/none"); got.code != exitError || got.stdout != "" || got.stderr != "redrive: orders.dlq: run none: there is no such run\n" {
			t.Errorf("%s: %+v", verb, got)
		}
		if got := b.redrive(t, verb, "none"); got.code != exitUsage || !strings.HasPrefix(got.stderr, `redrive: "none" is not a run such as orders.dlq/20260102-150405-a1b2c3: redrive runs TOPIC lists them`) {
			t.Errorf("%s: %+v", verb, got)
		}
	}
}

// What is broken in a ledger is named, with what to do; what is not broken is used.
func TestABrokenLedgerIsTold(t *testing.T) {
	t.Parallel()
	b := aftermath(t)
	b.produce(t, &kgo.Record{Topic: "orders.dlq.ledger", Partition: 0, Key: []byte("foo"), Value: []byte("bar")}) // about no letter: it can stay
	b.produce(t, &kgo.Record{Topic: "orders.dlq.ledger", Partition: 0, Key: []byte("1"), Value: []byte(`{"v":1,"sta`)})
	// A broken entry: its letter counts as open, and everybody who goes by that says so.
	for _, args := range [][]string{{"summary", "orders.dlq"}, {"list", "orders.dlq"}, {"prune", "orders.dlq"}, {"topics"}} {
		got := b.redrive(t, args...)
		if got.code != exitDone || !strings.Contains(got.stderr, "warning: orders.dlq.ledger: the entries about 1 letter can't be read, so these letters count as open; the first: dlq: ledger record orders.dlq.ledger/0/") || !strings.Contains(got.stderr, ` with key "1": `) {
			t.Errorf("%q: %+v", args, got)
		}
	}
	// One that may have been brought back is named, by whoever would bring it back.
	if got := b.redrive(t, "plan", "orders.dlq", "--target", "orders", "--wait"); got.code != exitDone ||
		!strings.Contains(got.stderr, "warning: what orders.dlq.ledger says of 1 of the letters can't be read, so they may be redriven a second time: orders.dlq/0/1; ") {
		t.Errorf("%+v", got)
	}
	// A run that can't be read: nobody knows whether it goes on.
	b.produce(t, dlq.RunRecord("orders.dlq.ledger", "r-1", []byte(`{"v":1,`)), dlq.RunRecord("orders.dlq.ledger", "r-2", []byte(`{"v":1,"id":"r-2","state":"done","by":"ada"}`)))
	says := "run r-1 can't be read from the ledger: unexpected end of JSON input; a record without a value, with the key run/r-1 and on partition 0 of orders.dlq.ledger, takes it away"
	for _, args := range [][]string{
		{"plan", "orders.dlq"},
		{"run", "orders.dlq"},
		{"discard", "orders.dlq", "--why", "x", "--yes"},
		{"prune", "orders.dlq", "--older-than", "1ms", "--yes"},
		{"import", "orders.dlq", save(t, "")},
		{"status", "orders.dlq/r-1"},
		{"abort", "orders.dlq/r-1"},
		{"resume", "orders.dlq/r-1"},
	} {
		got := b.redrive(t, args...)
		if got.code != exitError || got.stdout != "" || !strings.Contains(got.stderr, says) {
			t.Errorf("%q: %+v", args, got)
		}
	}
	if got := b.redrive(t, "runs", "orders.dlq", "-o", "jsonl"); got.code != exitError || !strings.Contains(got.stdout, `"run":"orders.dlq/r-2"`) || !strings.Contains(got.stderr, says) {
		t.Errorf("runs: %+v", got)
	}
	b.wantOpen(t, "0:1 0:3 1:0 1:1 1:2")
	b.produce(t, dlq.RunRecord("orders.dlq.ledger", "r-1", nil)) // as it says
	if got := b.redrive(t, "discard", "orders.dlq", "--why", "x", "--yes"); got.code != exitDone {
		t.Errorf("%+v", got)
	}
	b.produce(t, dlq.RunRecord("orders.dlq.ledger", "r-3", []byte(`{"v":2,"id":"r-3","state":"new"}`)))
	if got := b.redrive(t, "plan", "orders.dlq"); got.code != exitError || !strings.Contains(got.stderr, "it is of version 2, and this one knows 1: take a newer siding") || strings.Contains(got.stderr, "takes it away") {
		t.Errorf("%+v", got)
	}
}

// What retention took of a frozen selection is not sent, and the run says so: it does not fail for it.
func TestLettersThatExpiredSinceAreCountedAsSuch(t *testing.T) {
	t.Parallel()
	s := inTrouble(t)
	o := s.interruptedRun(t)
	for p := range int32(4) {
		s.deleteTo(t, "orders.dlq", p, -1)
	}
	got := s.redrive(t, "resume", o.Run, "-o", "json")
	end := outcomeOf(t, got.stdout)
	if got.code != exitDone || end.State != "done" || end.Sent != o.Sent || end.Succeeded != o.Sent || end.Skipped["expired"] != 60-o.Sent {
		t.Errorf("%+v", got)
	}
	if once, more := s.processed(); once != int(o.Sent) || more != 0 {
		t.Errorf("%d were processed once, %d more often", once, more)
	}
	if got := s.redrive(t, "status", o.Run); !strings.Contains(got.stdout, "NOT SENT      ") || !strings.Contains(got.stdout, " letters: expired\n") {
		t.Errorf("%+v", got)
	}
}

// A broker that goes away while a verb reads must not keep it for ever.
func TestABrokerThatGoesAwayEndsAVerb(t *testing.T) {
	t.Parallel()
	b := aftermath(t)
	i := invocation{env: map[string]string{"SIDING_BROKERS": b.addr, "SIDING_TIMEOUT": "1s"}, stdin: "5\n"}
	i.typed = b.Close
	began := time.Now()
	got := i.run(t, "discard", "orders.dlq", "--why", "x")
	if took := time.Since(began); got.code != exitError || got.stdout != "" || took > 45*time.Second {
		t.Errorf("after %s: %+v", took, got)
	}
}
