package look_test

import (
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

func TestTopics_QuickShowsWhatTheClusterKnows(t *testing.T) {
	t.Parallel()
	b := roottest.SomeTopics(t)
	for _, f := range output.Formats {
		for file, args := range map[string][]string{"topics." + f: {"topics", "--all"}, "parked." + f: {"topics", "--parked"}} {
			roottest.PrintsGolden(t, b.Redrive(t, append(args, "-o", f)...), file)
		}
	}
	got := b.Redrive(t, "topics", "--quick", "-o", "jsonl")
	roottest.Prints(t, got, cli.ExitDone, `"letters":4,"open":null,"pending":null,"resolved":null,"oldestOpen":null,"topClass":null,"groups":null,"lastHour":2,`, "")
	b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.TopicAuthorizationFailed, Count: -1})
	if quick := b.Redrive(t, "topics", "--quick", "-o", "jsonl"); quick != got {
		t.Errorf("--quick reads: %+v", quick)
	}
}

func TestTopics_ShowsWhatIsOpen(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	got := b.Redrive(t, "topics", "-o", "jsonl")
	// Two classes have two letters each, one of them with two fingerprints.
	want := `"letters":7,"open":5,"pending":0,"resolved":1,"oldestOpen":"2026-11-20T08:00:00.000Z","topClass":"decode","groups":["billing","mail"],`
	roottest.Prints(t, got, cli.ExitDone, want, "")
	// One topic that can't be read leaves the others as they are.
	b.Topic(t, "mail.dlq", 1, nil)
	b.Topic(t, "mail.dlq.ledger", 1, nil)
	b.Produce(t, roottest.Letter("orders.dlq", 0, 0, headers.Meta{}), roottest.Letter("mail.dlq", 0, 0, headers.Meta{Class: "smtp"}))
	b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders.dlq", Err: kerr.TopicAuthorizationFailed, Count: -1})
	got = b.Redrive(t, "topics", "-o", "jsonl")
	if got.Code != cli.ExitDone || !strings.Contains(got.Stdout, `"letters":8,"open":null,`) || !strings.Contains(got.Stdout, `"letters":1,"open":1,"pending":0,"resolved":0,`) ||
		got.Stderr != "warning: not authorized: the user needs READ on topic orders.dlq: have it granted (kafka-acls.sh --add --allow-principal User:… --operation READ --topic orders.dlq)\n" {
		t.Errorf("%+v", got)
	}
}

// A topic that is deleted while topics are listed had a warning for each thing that could not be
// asked of it.
func TestTopics_WarnsOnceOfADeletedTopic(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]kmsg.Key{"before its offsets are read": kmsg.ListOffsets, "before its letters are read": kmsg.Fetch} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := roottest.NewBroker(t).Open(t)
			for _, topic := range []string{"mail.dlq", "orders.dlq"} {
				b.Topic(t, topic, 1, nil)
				b.Topic(t, topic+".ledger", 1, nil)
				b.Produce(t, roottest.Letter(topic, 0, 0, headers.Meta{Class: "tax"}))
			}
			var once sync.Once
			b.ControlKey(int16(at), func(kmsg.Request) (kmsg.Response, error, bool) {
				b.KeepControl()
				once.Do(func() { _ = b.DeleteTopic("orders.dlq") })
				return nil, nil, false
			})
			got := b.Redrive(t, "topics", "-o", "jsonl")
			if got.Code != cli.ExitDone || !strings.Contains(got.Stdout, `{"topic":"mail.dlq","source":"mail","sourceGone":true,"partitions":1,"letters":1,"open":1,`) || strings.Count(got.Stderr, "\n") != 1 || strings.Count(got.Stderr, "orders.dlq") != 1 {
				t.Errorf("%+v", got)
			}
		})
	}
}

// Hundreds of topics hid the one that mattered: they came by name, most of them with nothing open.
func TestTopics_ShowsTheWorstFirstAndFoldsTheEmpty(t *testing.T) {
	t.Parallel()
	b := roottest.NewBroker(t).Open(t)
	for topic, n := range map[string]int{"a.dlq": 0, "b.dlq": 1, "c.dlq": 3, "d.dlq": 2, "e.dlq": 1, "f.dlq": 1, "orders.dlq": 1} {
		b.Topic(t, topic, 1, map[string]string{"retention.ms": "-1"})
		b.Topic(t, topic+".ledger", 1, nil)
		for range n {
			b.Produce(t, roottest.Letter(topic, 0, time.Hour, headers.Meta{Class: "tax"}))
		}
	}
	e := dlq.Entry{State: dlq.Discarded, At: clitest.Noon, By: "ada"}
	b.Produce(t, e.Record("e.dlq.ledger", 0, 0))
	e = dlq.Entry{State: dlq.Redriven, At: clitest.Noon, Run: "r"}
	b.Produce(t, e.Record("f.dlq.ledger", 0, 0)) // pending, so it is not over
	for args, want := range map[string]roottest.Result{
		"":                              {Stdout: "c.dlq d.dlq b.dlq orders.dlq f.dlq", Stderr: "2 topics have no open and no pending letters: --all lists them\n", Code: cli.ExitDone},
		"--all":                         {Stdout: "c.dlq d.dlq b.dlq orders.dlq a.dlq e.dlq f.dlq", Code: cli.ExitDone},
		"-o jsonl":                      {Stdout: "c.dlq d.dlq b.dlq orders.dlq a.dlq e.dlq f.dlq", Code: cli.ExitDone},
		"--filter [cd].*":               {Stdout: "c.dlq d.dlq", Code: cli.ExitDone},
		"--filter order --filter c.dlq": {Stdout: "c.dlq orders.dlq", Code: cli.ExitDone},
		"--filter a.dlq":                {Stderr: "1 topic has no open and no pending letters: --all lists it\n", Code: cli.ExitDone},
		"--filter [ae].dlq":             {Stderr: "all 2 topics have no open and no pending letters: --all lists them\n", Code: cli.ExitDone},
		"--filter nope":                 {Stderr: "none of the 7 dead-letter topics fits --filter nope\n", Code: cli.ExitDone},
		"--quick":                       {Stdout: "c.dlq d.dlq b.dlq e.dlq f.dlq orders.dlq", Stderr: "1 topic has no letters: --all lists it\n", Code: cli.ExitDone},
		"--parked --filter nope":        {Stderr: "no retry topics are named like {topic}.retry.{delay}, or this user may see none\n", Code: cli.ExitDone},
		"--filter [c":                   {Stderr: "redrive: --filter: \"[c\" is not a pattern: * is any text, ? any character, [abc] one of these\nsee redrive topics --help\n", Code: cli.ExitUsage},
		"--parked --all":                {Stderr: "redrive: --parked and --all: all retry topics are listed, so omit --all\nsee redrive topics --help\n", Code: cli.ExitUsage},
	} {
		got := b.Redrive(t, append([]string{"topics"}, strings.Fields(args)...)...)
		got.Stdout = strings.Join(regexp.MustCompile(`[a-z]+\.dlq`).FindAllString(got.Stdout, -1), " ")
		roottest.Exactly(t, got, want.Code, want.Stdout, want.Stderr, args)
	}
}

func TestTopics_GoesByTheNaming(t *testing.T) {
	t.Parallel()
	b := roottest.NewBroker(t, kfake.SeedTopics(1, "dead_orders", "orders.dlq", "parked_orders_5s")).Open(t)
	naming := []string{"--dlq-name", "dead_{topic}", "--ledger-name", "ledger_{topic}", "--retry-name", "parked_{topic}_{delay}", "-o", "jsonl"}
	if got := b.Redrive(t, append(naming, "topics")...); !strings.HasPrefix(got.Stdout, `{"topic":"dead_orders","source":"orders","sourceGone":true,"partitions":1,"letters":0,"open":0,"pending":0,"resolved":0,"oldestOpen":null,"topClass":null,"groups":[],"lastHour":0,`) || strings.Count(got.Stdout, "\n") != 1 {
		t.Errorf("topics: %+v", got)
	}
	want := `{"topic":"parked_orders_5s","source":"orders","delayMs":5000,"partitions":1,"group":null,"parked":0,"exact":true}` + "\n"
	roottest.Exactly(t, b.Redrive(t, append(naming, "topics", "--parked")...), cli.ExitDone, want, "")
}

func TestTopics_NoneIsNoError(t *testing.T) {
	t.Parallel()
	b := roottest.NewBroker(t)
	for _, args := range [][]string{{"topics"}, {"topics", "--parked"}} {
		got := b.Redrive(t, args...)
		roottest.Prints(t, got, cli.ExitDone, "", "topics are named like {topic}.", args)
	}
	roottest.Exactly(t, b.Redrive(t, "topics", "-o", "json"), cli.ExitDone, "[]\n", "no dead-letter topics are named like {topic}.dlq, or this user may see none\n")
}
