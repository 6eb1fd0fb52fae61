package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

func someTopics(t *testing.T) *broker {
	t.Helper()
	b := newBroker(t).open(t)
	b.topic(t, "orders", 3, nil)
	b.topic(t, "orders.dlq", 3, map[string]string{"retention.ms": "1209600000"})
	b.topic(t, "orders.dlq.ledger", 3, nil)
	b.topic(t, "orders.retry.5s", 3, nil)
	b.topic(t, "orders.retry.30s", 3, nil)
	b.topic(t, "audit.dlq", 1, map[string]string{"retention.ms": "-1"}) // its source is gone
	b.topic(t, "payments", 1, nil)
	b.topic(t, "payments.dlq", 1, map[string]string{"retention.ms": "3600000"})
	b.produce(t,
		letter("orders.dlq", 0, 24*time.Hour, headers.Meta{Class: "http.503"}),
		letter("orders.dlq", 0, 30*time.Minute, headers.Meta{Class: "http.503"}),
		letter("orders.dlq", 1, time.Hour, headers.Meta{Class: "decode"}), // just within
		letter("orders.dlq", 2, 61*time.Minute, headers.Meta{Class: "decode"}),
		letter("payments.dlq", 0, 2*time.Hour, headers.Meta{}), // due to expire an hour ago
		letter("orders.retry.5s", 0, 0, headers.Meta{}), letter("orders.retry.5s", 0, 0, headers.Meta{}),
		letter("orders.retry.5s", 1, 0, headers.Meta{}),
	)
	// billing has a committed offset on two partitions of one tier; nobody has one on the other tier.
	b.commit(t, "billing", "orders.retry.5s", 0, 1)
	b.commit(t, "billing", "orders.retry.5s", 2, 0)
	b.commit(t, "other", "orders", 0, 0)
	return b
}

func TestTopicsTellsWhatTheClusterKnows(t *testing.T) {
	t.Parallel()
	b := someTopics(t)
	for _, f := range output.Formats {
		for file, args := range map[string][]string{"topics." + f: {"topics"}, "parked." + f: {"topics", "--parked"}} {
			got := b.redrive(t, append(args, "-o", f)...)
			if got.code != exitDone || got.stderr != "" {
				t.Errorf("%s: exit code %d, %s", file, got.code, got.stderr)
			}
			golden(t, file, got.stdout)
		}
	}
	got := b.redrive(t, "topics", "--quick", "-o", "jsonl")
	if want := `"letters":4,"open":null,"resolved":null,"oldestOpen":null,"topClass":null,"groups":null,"lastHour":2,`; got.code != exitDone || !strings.Contains(got.stdout, want) {
		t.Errorf("%+v, want %s", got, want)
	}
	b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.TopicAuthorizationFailed, Count: -1})
	if quick := b.redrive(t, "topics", "--quick", "-o", "jsonl"); quick != got {
		t.Errorf("--quick reads: %+v", quick)
	}
}

func TestTopicsTellsWhatIsOpen(t *testing.T) {
	t.Parallel()
	b := aftermath(t)
	got := b.redrive(t, "topics", "-o", "jsonl")
	// Two classes have two letters each, one of them with two fingerprints.
	want := `"letters":7,"open":5,"resolved":1,"oldestOpen":"2026-11-20T08:00:00.000Z","topClass":"decode","groups":["billing","mail"],`
	if got.code != exitDone || got.stderr != "" || !strings.Contains(got.stdout, want) {
		t.Errorf("%+v, want %s", got, want)
	}
	// One topic that can't be read leaves the others as they are.
	b.topic(t, "mail.dlq", 1, nil)
	b.topic(t, "mail.dlq.ledger", 1, nil)
	b.produce(t, letter("orders.dlq", 0, 0, headers.Meta{}), letter("mail.dlq", 0, 0, headers.Meta{Class: "smtp"}))
	b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders.dlq", Err: kerr.TopicAuthorizationFailed, Count: -1})
	got = b.redrive(t, "topics", "-o", "jsonl")
	if got.code != exitDone || !strings.Contains(got.stdout, `"letters":8,"open":null,`) || !strings.Contains(got.stdout, `"letters":1,"open":1,"resolved":0,`) ||
		got.stderr != "warning: not authorized: the user needs READ on topic orders.dlq: have it granted (kafka-acls.sh --add --allow-principal User:… --operation READ --topic orders.dlq)\n" {
		t.Errorf("%+v", got)
	}
}

func TestTopicsGoesByTheNaming(t *testing.T) {
	t.Parallel()
	b := newBroker(t).open(t)
	b.topic(t, "dead_orders", 1, nil)
	b.topic(t, "orders.dlq", 1, nil)
	b.topic(t, "parked_orders_5s", 1, nil)
	naming := []string{"--dlq-name", "dead_{topic}", "--ledger-name", "ledger_{topic}", "--retry-name", "parked_{topic}_{delay}", "-o", "jsonl"}
	if got := b.redrive(t, append(naming, "topics")...); !strings.HasPrefix(got.stdout, `{"topic":"dead_orders","source":"orders","sourceGone":true,"partitions":1,"letters":0,"open":0,"resolved":0,"oldestOpen":null,"topClass":null,"groups":[],"lastHour":0,`) || strings.Count(got.stdout, "\n") != 1 {
		t.Errorf("topics: %+v", got)
	}
	want := `{"topic":"parked_orders_5s","source":"orders","delayMs":5000,"partitions":1,"group":null,"parked":0,"exact":true}` + "\n"
	if got := b.redrive(t, append(naming, "topics", "--parked")...); got.stdout != want {
		t.Errorf("parked: %+v, want %s", got, want)
	}
}

// A run leaves a mark on each partition behind its last record, past which nobody commits: five were parked there for ever.
func TestMarksOfTransactionsAreNotParked(t *testing.T) {
	t.Parallel()
	b := newBroker(t).open(t)
	b.topic(t, "orders.retry.5s", 1, nil)
	tx, err := kgo.NewClient(kgo.SeedBrokers(b.ListenAddrs()...), kgo.TransactionalID("run"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tx.Close)
	send := func(end func()) {
		t.Helper()
		if err := tx.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		r := letter("orders.retry.5s", 0, 0, headers.Meta{})
		if err := tx.ProduceSync(t.Context(), r, letter("orders.retry.5s", 0, 0, headers.Meta{})).FirstErr(); err != nil {
			t.Fatal(err)
		}
		end()
	}
	commit := func() {
		t.Helper()
		if err := tx.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
			t.Fatal(err)
		}
	}
	shows := func(when, table, json string) {
		t.Helper()
		if got := b.redrive(t, "topics", "--parked"); got.code != exitDone || got.stderr != "" || !strings.Contains(strings.Join(strings.Fields(got.stdout), " "), table) {
			t.Errorf("%s: %+v, want %s", when, got, table)
		}
		if got := b.redrive(t, "topics", "--parked", "-o", "jsonl"); !strings.Contains(got.stdout, `"group":"billing",`+json) {
			t.Errorf("%s: %+v, want %s", when, got, json)
		}
	}
	send(commit)
	b.commit(t, "billing", "orders.retry.5s", 0, 2)
	b.commit(t, "mail", "orders.retry.5s", 0, 1)
	shows("all is handled", "billing 0 orders.retry.5s orders 5s 1 mail 1", `"parked":0,"exact":true}`)
	send(commit)
	shows("two more", "billing 2", `"parked":2,"exact":true}`)
	send(func() {})
	shows("a transaction is open", "billing <= 4", `"parked":4,"exact":false}`)
	commit()
	b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.TopicAuthorizationFailed, Count: -1})
	shows("it may not be read", "billing <= 7", `"parked":7,"exact":false}`)
}

// A source that the user may not see is not gone, for all that is known.
func TestASourceThatMayNotBeSeenIsNotGone(t *testing.T) {
	t.Parallel()
	b := guarded(t, []kfake.ACL{aclOn("audit.dlq", kmsg.ACLOperationRead), aclOn("audit", kmsg.ACLOperationDescribe), aclOn("orders.dlq", kmsg.ACLOperationRead), aclOn("orders.dlq.ledger", kmsg.ACLOperationRead), aclOn("orders.dlq", kmsg.ACLOperationDescribeConfigs)})
	b.topic(t, "audit.dlq", 1, nil) // whose source is gone, and may be seen
	got := b.as("ann").run(t, "topics", "-o", "jsonl")
	if got.code != exitDone || !strings.Contains(got.stdout, `"topic":"orders.dlq","source":"orders","sourceGone":null,`) || !strings.Contains(got.stdout, `"topic":"audit.dlq","source":"audit","sourceGone":true,`) {
		t.Errorf("%+v", got)
	}
	if got := b.as("ann").run(t, "topics"); strings.Count(got.stdout, "gone") != 1 || !strings.Contains(got.stdout, "audit.dlq (its source is gone)") {
		t.Errorf("%+v", got)
	}
}

func TestAClusterWithoutDeadLettersIsNoError(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	for _, args := range [][]string{{"topics"}, {"topics", "--parked"}} {
		got := b.redrive(t, args...)
		if got.code != exitDone || got.stdout != "" || !strings.Contains(got.stderr, "topics are named like {topic}.") {
			t.Errorf("%q: %+v", args, got)
		}
	}
	if got := b.redrive(t, "topics", "-o", "json"); got.stdout != "[]\n" {
		t.Errorf("json: %+v", got)
	}
}

// What could not be found out is unknown, never zero: an operator would take zero for good news.
func TestWhatTheBrokersDoNotTellIsNotZero(t *testing.T) {
	t.Parallel()
	b := someTopics(t)
	b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Err: kerr.TopicAuthorizationFailed, Count: -1})
	for _, args := range [][]string{{"topics"}, {"topics", "--parked"}} {
		got := b.redrive(t, append(args, "-o", "json")...)
		var rows []struct{ Topic, Letters, Open, Resolved, LastHour, Parked any }
		if err := json.Unmarshal([]byte(got.stdout), &rows); err != nil || len(rows) < 2 || got.code != exitDone {
			t.Fatalf("%q: %+v, %v", args, got, err)
		}
		for _, r := range rows {
			if r.Letters != nil || r.Open != nil || r.Resolved != nil || r.LastHour != nil || r.Parked != nil {
				t.Errorf("%q: %+v, want nothing known", args, r)
			}
		}
		if !strings.Contains(got.stderr, "warning: not authorized: the user needs DESCRIBE on topic orders.") {
			t.Errorf("%q: %s", args, got.stderr)
		}
	}
}
