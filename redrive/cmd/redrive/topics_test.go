package main

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
)

func TestTopics_QuickShowsWhatTheClusterKnows(t *testing.T) {
	t.Parallel()
	b := someTopics(t)
	for _, f := range output.Formats {
		for file, args := range map[string][]string{"topics." + f: {"topics", "--all"}, "parked." + f: {"topics", "--parked"}} {
			printsGolden(t, b.redrive(t, append(args, "-o", f)...), file)
		}
	}
	got := b.redrive(t, "topics", "--quick", "-o", "jsonl")
	prints(t, got, cli.ExitDone, `"letters":4,"open":null,"pending":null,"resolved":null,"oldestOpen":null,"topClass":null,"groups":null,"lastHour":2,`, "")
	b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.TopicAuthorizationFailed, Count: -1})
	if quick := b.redrive(t, "topics", "--quick", "-o", "jsonl"); quick != got {
		t.Errorf("--quick reads: %+v", quick)
	}
}

func TestTopics_ShowsWhatIsOpen(t *testing.T) {
	t.Parallel()
	b := aftermath(t)
	got := b.redrive(t, "topics", "-o", "jsonl")
	// Two classes have two letters each, one of them with two fingerprints.
	want := `"letters":7,"open":5,"pending":0,"resolved":1,"oldestOpen":"2026-11-20T08:00:00.000Z","topClass":"decode","groups":["billing","mail"],`
	prints(t, got, cli.ExitDone, want, "")
	// One topic that can't be read leaves the others as they are.
	b.topic(t, "mail.dlq", 1, nil)
	b.topic(t, "mail.dlq.ledger", 1, nil)
	b.produce(t, letter("orders.dlq", 0, 0, headers.Meta{}), letter("mail.dlq", 0, 0, headers.Meta{Class: "smtp"}))
	b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders.dlq", Err: kerr.TopicAuthorizationFailed, Count: -1})
	got = b.redrive(t, "topics", "-o", "jsonl")
	if got.code != cli.ExitDone || !strings.Contains(got.stdout, `"letters":8,"open":null,`) || !strings.Contains(got.stdout, `"letters":1,"open":1,"pending":0,"resolved":0,`) ||
		got.stderr != "warning: not authorized: the user needs READ on topic orders.dlq: have it granted (kafka-acls.sh --add --allow-principal User:… --operation READ --topic orders.dlq)\n" {
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
			b := newBroker(t).open(t)
			for _, topic := range []string{"mail.dlq", "orders.dlq"} {
				b.topic(t, topic, 1, nil)
				b.topic(t, topic+".ledger", 1, nil)
				b.produce(t, letter(topic, 0, 0, headers.Meta{Class: "tax"}))
			}
			var once sync.Once
			b.ControlKey(int16(at), func(kmsg.Request) (kmsg.Response, error, bool) {
				b.KeepControl()
				once.Do(func() { _ = b.DeleteTopic("orders.dlq") })
				return nil, nil, false
			})
			got := b.redrive(t, "topics", "-o", "jsonl")
			if got.code != cli.ExitDone || !strings.Contains(got.stdout, `{"topic":"mail.dlq","source":"mail","sourceGone":true,"partitions":1,"letters":1,"open":1,`) || strings.Count(got.stderr, "\n") != 1 || strings.Count(got.stderr, "orders.dlq") != 1 {
				t.Errorf("%+v", got)
			}
		})
	}
}

// Hundreds of topics hid the one that mattered: they came by name, most of them with nothing open.
func TestTopics_ShowsTheWorstFirstAndFoldsTheEmpty(t *testing.T) {
	t.Parallel()
	b := newBroker(t).open(t)
	for topic, n := range map[string]int{"a.dlq": 0, "b.dlq": 1, "c.dlq": 3, "d.dlq": 2, "e.dlq": 1, "f.dlq": 1, "orders.dlq": 1} {
		b.topic(t, topic, 1, map[string]string{"retention.ms": "-1"})
		b.topic(t, topic+".ledger", 1, nil)
		for range n {
			b.produce(t, letter(topic, 0, time.Hour, headers.Meta{Class: "tax"}))
		}
	}
	e := dlq.Entry{State: dlq.Discarded, At: clitest.Noon, By: "ada"}
	b.produce(t, e.Record("e.dlq.ledger", 0, 0))
	e = dlq.Entry{State: dlq.Redriven, At: clitest.Noon, Run: "r"}
	b.produce(t, e.Record("f.dlq.ledger", 0, 0)) // pending, so it is not over
	for args, want := range map[string]result{
		"":                              {"c.dlq d.dlq b.dlq orders.dlq f.dlq", "2 topics have no open and no pending letters: --all lists them\n", cli.ExitDone},
		"--all":                         {"c.dlq d.dlq b.dlq orders.dlq a.dlq e.dlq f.dlq", "", cli.ExitDone},
		"-o jsonl":                      {"c.dlq d.dlq b.dlq orders.dlq a.dlq e.dlq f.dlq", "", cli.ExitDone},
		"--filter [cd].*":               {"c.dlq d.dlq", "", cli.ExitDone},
		"--filter order --filter c.dlq": {"c.dlq orders.dlq", "", cli.ExitDone},
		"--filter a.dlq":                {"", "1 topic has no open and no pending letters: --all lists it\n", cli.ExitDone},
		"--filter [ae].dlq":             {"", "all 2 topics have no open and no pending letters: --all lists them\n", cli.ExitDone},
		"--filter nope":                 {"", "none of the 7 dead-letter topics fits --filter nope\n", cli.ExitDone},
		"--quick":                       {"c.dlq d.dlq b.dlq e.dlq f.dlq orders.dlq", "1 topic has no letters: --all lists it\n", cli.ExitDone},
		"--parked --filter nope":        {"", "no retry topics are named like {topic}.retry.{delay}, or this user may see none\n", cli.ExitDone},
		"--filter [c":                   {"", "redrive: --filter: \"[c\" is not a pattern: * is any text, ? any character, [abc] one of these\nsee redrive topics --help\n", cli.ExitUsage},
		"--parked --all":                {"", "redrive: --parked and --all: all retry topics are listed, so omit --all\nsee redrive topics --help\n", cli.ExitUsage},
	} {
		got := b.redrive(t, append([]string{"topics"}, strings.Fields(args)...)...)
		got.stdout = strings.Join(regexp.MustCompile(`[a-z]+\.dlq`).FindAllString(got.stdout, -1), " ")
		exactly(t, got, want.code, want.stdout, want.stderr, args)
	}
}

func TestTopics_GoesByTheNaming(t *testing.T) {
	t.Parallel()
	b := newBroker(t).open(t)
	b.topic(t, "dead_orders", 1, nil)
	b.topic(t, "orders.dlq", 1, nil)
	b.topic(t, "parked_orders_5s", 1, nil)
	naming := []string{"--dlq-name", "dead_{topic}", "--ledger-name", "ledger_{topic}", "--retry-name", "parked_{topic}_{delay}", "-o", "jsonl"}
	if got := b.redrive(t, append(naming, "topics")...); !strings.HasPrefix(got.stdout, `{"topic":"dead_orders","source":"orders","sourceGone":true,"partitions":1,"letters":0,"open":0,"pending":0,"resolved":0,"oldestOpen":null,"topClass":null,"groups":[],"lastHour":0,`) || strings.Count(got.stdout, "\n") != 1 {
		t.Errorf("topics: %+v", got)
	}
	want := `{"topic":"parked_orders_5s","source":"orders","delayMs":5000,"partitions":1,"group":null,"parked":0,"exact":true}` + "\n"
	exactly(t, b.redrive(t, append(naming, "topics", "--parked")...), cli.ExitDone, want, "")
}

func TestTopics_NoneIsNoError(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	for _, args := range [][]string{{"topics"}, {"topics", "--parked"}} {
		got := b.redrive(t, args...)
		prints(t, got, cli.ExitDone, "", "topics are named like {topic}.", args)
	}
	exactly(t, b.redrive(t, "topics", "-o", "json"), cli.ExitDone, "[]\n", "no dead-letter topics are named like {topic}.dlq, or this user may see none\n")
}
