package look_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

func TestShow_PrintsAllOfALetter(t *testing.T) {
	t.Parallel()
	b := roottest.NewBroker(t, kfake.SeedTopics(2, "orders.dlq")).Open(t)
	at := clitest.Noon.Add(-2 * time.Hour)
	full := roottest.Letter("orders.dlq", 1, 2*time.Hour, headers.Meta{
		Original: headers.Position{Topic: "orders", Partition: 1, Offset: 7, Timestamp: at.Add(-time.Hour)},
		Group:    "billing", Attempts: 2, Class: "http.503", Fingerprint: "00000000000000aa", Reason: headers.ReasonExhausted,
		Message: "no route\n\x1b[31mto host", Stack: "main.handle\n\tmain.go:3",
		History: []headers.Attempt{
			{Number: 1, Class: "http.503", At: at},
			{Number: 2, Run: 1, Class: "http.503", At: at, Verdict: "retry", Message: "no route\n\x1b[31mto host"},
			{Number: 2, Run: 2, Class: "http.503", At: at, Verdict: "retry", Message: "no route"},
			{Number: 1, Class: "http.404", At: at, Verdict: "terminal"},
		},
		Redrive: headers.Redrive{
			ID: "r-1", Count: 1, From: headers.Position{Topic: "orders.dlq", Partition: 1, Offset: 0}, At: at.Add(-time.Minute), MaxAttempts: 2,
		},
	})
	full.Value = []byte("{\"id\":9007199254740993,\"name\":\"\u009b2J\"}")
	foreign := &kgo.Record{Topic: "orders.dlq", Partition: 0, Timestamp: at, Headers: []kgo.RecordHeader{{Key: "x\x1b[2J", Value: []byte("\xff")}}}
	b.Produce(t, foreign, full)
	for _, f := range output.Formats {
		for name, place := range map[string]string{"show": "1:0", "show-foreign": "0:0"} {
			for _, as := range output.Renderings {
				file := name + "-" + as + "." + f
				got := b.Redrive(t, "show", "orders.dlq", place, "--utc", "--as", as, "-o", f)
				roottest.PrintsGolden(t, got, file)
				if f != string(output.Table) && !json.Valid([]byte(got.Stdout)) {
					t.Errorf("%s: no JSON: %s", file, got.Stdout)
				}
			}
		}
	}
}

// Of one letter a time was local, another in UTC, and the reader had to find out which.
func TestShow_HasOneTimeZone(t *testing.T) {
	t.Parallel()
	b := roottest.NewBroker(t, kfake.SeedTopics(1, "orders.dlq", "orders.dlq.ledger")).Open(t)
	m := headers.Meta{Class: "tax", History: []headers.Attempt{{Number: 1, Class: "tax", At: clitest.Noon}, {Number: 2, Class: "http.503", At: clitest.Noon.Add(time.Minute)}}}
	b.Produce(t, roottest.Letter("orders.dlq", 0, 0, m))
	b.Record(t, 0, 0, dlq.Entry{State: dlq.Discarded, At: clitest.Noon.Add(time.Hour), By: "ada"})
	there := time.FixedZone("there", -5*60*60)
	i := roottest.Invocation{Env: map[string]string{"SIDING_BROKERS": b.Addr}, Now: func() time.Time { return clitest.Noon.In(there) }}
	got := i.Run(t, "show", "orders.dlq", "0:0")
	roottest.InOrder(t, got.Stdout, "\nLAST FAILED   2026-11-20 07:00:00\n", "\nhistory (2):\n  1: tax at 2026-11-20 07:00:00\n  2: http.503 at 2026-11-20 07:01:00\n", "\n  discarded at 2026-11-20 08:00:00 by ada\n")
	b.DeleteTo(t, "orders.dlq", 0, -1)
	roottest.Prints(t, i.Run(t, "show", "orders.dlq", "0:0"), cli.ExitError, "", "the ledger still records: discarded at 2026-11-20 08:00:00 by ada")
	roottest.Prints(t, i.Run(t, "show", "orders.dlq", "0:0", "--utc"), cli.ExitError, "", "discarded at 2026-11-20 13:00:00Z by ada")
}

func TestShow_PrintsTheOutcomeOfALetter(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	at := clitest.Noon.Add(-time.Hour)
	b.Record(t, 1, 0, dlq.Entry{State: dlq.Redriven, Run: "r-1", At: at, By: "ada", Why: "fixed", Target: headers.Position{Topic: "orders.retry.5s", Partition: 1, Offset: 4}, Edited: []string{"headers", "value"}})
	b.Record(t, 1, 0, dlq.Entry{State: dlq.Failed, Run: "r-1", At: at, Class: "decode"})
	b.Record(t, 1, 1, dlq.Entry{State: dlq.Discarded, At: at, By: "ada", Why: "x"})
	b.Record(t, 1, 1, dlq.Entry{})
	b.Record(t, 0, 1, dlq.Entry{State: dlq.Discarded, Run: "r-1", At: at, By: "ada", Why: "not ours"})
	b.Produce(t, &kgo.Record{Topic: "orders.dlq.ledger", Partition: 1, Key: []byte("2"), Value: []byte("{")})
	for place, want := range map[string]string{
		"0:0": "ledger (1):\n  discarded at 2026-11-20 11:59:00Z by ada: paid\\x1b[2J by hand\n",
		"0:1": "ledger (1):\n  discarded at 2026-11-20 11:00:00Z, run r-1 by the handler or its policy: not ours\n",
		"0:2": "STATE         duplicate\n\nkey:\n",
		"1:0": "ledger (2):\n  redriven at 2026-11-20 11:00:00Z, run r-1 by ada, to orders.retry.5s/1/4, edited: headers and value: fixed\n  failed at 2026-11-20 11:00:00Z, run r-1, with decode\n",
		"1:1": "ledger (2):\n  discarded at 2026-11-20 11:00:00Z by ada: x\n  open again: the entries before are withdrawn\n",
		"1:2": "ledger (1):\n  unreadable: ",
	} {
		got := b.Redrive(t, "show", "orders.dlq", place)
		roottest.Prints(t, got, cli.ExitDone, want, "", place)
	}
	got := b.Redrive(t, "show", "orders.dlq", "1:0", "-o", "json")
	roottest.Prints(t, got, cli.ExitDone, `"state":"failed","ledger":[{"state":"redriven","at":"2026-11-20T11:00:00.000Z","run":"r-1","by":"ada","why":"fixed","target":"orders.retry.5s/1/4","class":null,"edited":["headers","value"],"error":null},{"state":"failed",`, "")
	b.DeleteTo(t, "orders.dlq", 0, 1)
	got = b.Redrive(t, "show", "orders.dlq", "0:0")
	roottest.Prints(t, got, cli.ExitError, "", "lower ones have expired or were pruned; the ledger still records: discarded at ")
}

// Without the permission to read the ledger the letter is shown all the same.
func TestShow_DoesWithoutTheLedger(t *testing.T) {
	t.Parallel()
	i := roottest.Guarded(t, []kfake.ACL{roottest.ACLOn("orders.dlq", kmsg.ACLOperationDescribe), roottest.ACLOn("orders.dlq", kmsg.ACLOperationRead)}).As("ann")
	got := i.Run(t, "show", "orders.dlq", "0:0", "-o", "json")
	if want := "warning: the letter's state is not known: not authorized: the user needs READ on topic orders.dlq.ledger"; got.Code != cli.ExitDone || !strings.Contains(got.Stderr, want) ||
		!strings.Contains(got.Stdout, `"class":"tax"`) || !strings.Contains(got.Stdout, `"state":null,"ledger":[]`) {
		t.Errorf("%+v, want %q", got, want)
	}
	roottest.Prints(t, i.Run(t, "summary", "orders.dlq"), cli.ExitError, "", "redrive: not authorized: the user needs READ on topic orders.dlq.ledger")
}

// Which records stood beside the one that failed was asked with another tool, by hand.
func TestShow_PrintsTheNeighboursOnTheSource(t *testing.T) {
	t.Parallel()
	b := roottest.NewBroker(t, kfake.SeedTopics(1, "orders", "orders.dlq", "orders.dlq.ledger")).Open(t)
	for i := range 8 {
		b.Produce(t, &kgo.Record{Topic: "orders", Timestamp: clitest.Noon.Add(time.Duration(i) * time.Second), Key: fmt.Append(nil, i), Value: fmt.Appendf(nil, `{"n":%d,"card":4111}`, i)})
	}
	at := func(offset int64, id [16]byte) {
		b.Produce(t, roottest.Letter("orders.dlq", 0, 0, headers.Meta{Class: "tax", Original: headers.Position{Topic: "orders", TopicID: id, Offset: offset}}))
	}
	at(4, [16]byte{})
	at(0, [16]byte{})
	at(9, [16]byte{})
	at(3, [16]byte{1}) // of an older topic
	b.Produce(t, &kgo.Record{Topic: "orders.dlq", Value: []byte("foreign")})
	b.Produce(t, roottest.Letter("orders.dlq", 0, 0, headers.Meta{Class: "tax", Original: headers.Position{Topic: "gone", Offset: 1}}))
	got := b.Redrive(t, "show", "orders.dlq", "0:0", "--around", "1", "--utc", "--redact", "card")
	roottest.Prints(t, got, cli.ExitDone, `
around orders/0/4, the original position:
OFFSET  PRODUCED              KEY
     3  2026-11-20 12:00:03Z  3
  {"n":3,"card":"[redacted]"}
   > 4  2026-11-20 12:00:04Z  4
  {"n":4,"card":"[redacted]"}
     5  2026-11-20 12:00:05Z  5
  {"n":5,"card":"[redacted]"}
`, "")
	got = b.Redrive(t, "show", "orders.dlq", "0:0", "--around", "1", "-o", "json")
	roottest.Prints(t, got, cli.ExitDone, `"around":[{"offset":3,"original":false,"timestamp":"2026-11-20T12:00:03.000Z","key":"3","keyEncoding":"text","value":{"n":3,"card":4111},"encoding":"json","redacted":false},{"offset":4,"original":true,`, "")
	roottest.Prints(t, got, cli.ExitDone, `],"aroundMissing":null}`, "")
	b.DeleteTo(t, "orders", 0, 1)
	for place, want := range map[string][2]string{
		"0:1": {"around orders/0/0, the original position:\nOFFSET  PRODUCED              KEY\n     1  2026-11-20 12:00:01Z", "--around: the original is gone: retention or somebody deleted it, and orders/0 now begins at 1\n"},
		"0:2": {"around orders/0/9, the original position:\nOFFSET  PRODUCED              KEY\n     7  2026-11-20 12:00:07Z", "--around: the original is gone: orders/0 ends at 8\n"},
		"0:3": {"", "--around: the source orders was recreated: what is there now has nothing to do with the letter\n"},
		"0:4": {"", "--around: the letter does not say where it was first read: siding did not write it, or its headers are broken\n"},
		"0:5": {"", "--around: the source gone does not exist any more\n"},
	} {
		got := b.Redrive(t, "show", "orders.dlq", place, "--around", "2", "--utc")
		if got.Code != cli.ExitDone || got.Stderr != want[1] || !strings.Contains(got.Stdout, want[0]) || want[0] == "" && strings.Contains(got.Stdout, "around") {
			t.Errorf("%s: %+v, want %q", place, got, want)
		}
	}
	for _, n := range []string{"0", "-1", "101"} {
		roottest.Prints(t, b.Redrive(t, "show", "orders.dlq", "0:0", "--around="+n), cli.ExitUsage, "", "--around: "+n+" is not between 1 and 100", n)
	}
}

// Without the permission to read the source, show prints the letter and the missing permission.
func TestShow_NeighboursNeedAPermission(t *testing.T) {
	t.Parallel()
	i := roottest.Guarded(t, []kfake.ACL{roottest.ACLOn("orders.dlq", kmsg.ACLOperationRead), roottest.ACLOn("orders.dlq.ledger", kmsg.ACLOperationRead)}).As("ann")
	got := i.Run(t, "show", "orders.dlq", "0:0", "--around", "1")
	roottest.Prints(t, got, cli.ExitDone, "CLASS", "--around: the source can't be read: not authorized: the user needs DESCRIBE on topic orders")
}

func TestMain(m *testing.M) { roottest.RunTests(m) }
