package main

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

func TestTopics_QuickShowsWhatTheClusterKnows(t *testing.T) {
	t.Parallel()
	b := someTopics(t)
	for _, f := range output.Formats {
		for file, args := range map[string][]string{"topics." + f: {"topics"}, "parked." + f: {"topics", "--parked"}} {
			printsGolden(t, b.redrive(t, append(args, "-o", f)...), file)
		}
	}
	got := b.redrive(t, "topics", "--quick", "-o", "jsonl")
	prints(t, got, exitDone, `"letters":4,"open":null,"pending":null,"resolved":null,"oldestOpen":null,"topClass":null,"groups":null,"lastHour":2,`, "")
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
	prints(t, got, exitDone, want, "")
	// One topic that can't be read leaves the others as they are.
	b.topic(t, "mail.dlq", 1, nil)
	b.topic(t, "mail.dlq.ledger", 1, nil)
	b.produce(t, letter("orders.dlq", 0, 0, headers.Meta{}), letter("mail.dlq", 0, 0, headers.Meta{Class: "smtp"}))
	b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders.dlq", Err: kerr.TopicAuthorizationFailed, Count: -1})
	got = b.redrive(t, "topics", "-o", "jsonl")
	if got.code != exitDone || !strings.Contains(got.stdout, `"letters":8,"open":null,`) || !strings.Contains(got.stdout, `"letters":1,"open":1,"pending":0,"resolved":0,`) ||
		got.stderr != "warning: not authorized: the user needs READ on topic orders.dlq: have it granted (kafka-acls.sh --add --allow-principal User:… --operation READ --topic orders.dlq)\n" {
		t.Errorf("%+v", got)
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
	exactly(t, b.redrive(t, append(naming, "topics", "--parked")...), exitDone, want, "")
}

func TestTopics_NoneIsNoError(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	for _, args := range [][]string{{"topics"}, {"topics", "--parked"}} {
		got := b.redrive(t, args...)
		prints(t, got, exitDone, "", "topics are named like {topic}.", args)
	}
	exactly(t, b.redrive(t, "topics", "-o", "json"), exitDone, "[]\n", "no dead-letter topics are named like {topic}.dlq, or this user may see none\n")
}
