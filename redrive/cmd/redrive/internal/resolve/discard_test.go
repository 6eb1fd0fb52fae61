package resolve_test

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

func TestDiscard_DiscardsWhatWasTypedFor(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	i := roottest.Invocation{Env: map[string]string{"SIDING_BROKERS": b.Addr}, Stdin: "2\n"}
	got := i.Run(t, "discard", "orders.dlq", "--class", "decode", "--why", "bad\nfile", "-o", "json")
	want := `{"topic":"orders.dlq","discarded":2,"by":"oncall","why":"bad\nfile"}` + "\n"
	roottest.Exactly(t, got, cli.ExitDone, want, "2 letters of orders.dlq will be discarded; type 2 to continue:\n")
	b.WantOpen(t, "0:1 0:3 1:2")
	roottest.Prints(t, b.Redrive(t, "show", "orders.dlq", "1:1"), cli.ExitDone, ` by oncall: bad\nfile`, "")
	// The copy is discarded with its letter.
	got = b.Redrive(t, "discard", "orders.dlq", "--partition", "0", "--by", "ada", "--why", "x", "--yes")
	roottest.Prints(t, got, cli.ExitDone, "DISCARDED  2\nBY         ada\n", "")
	b.WantOpen(t, "1:2")
}

// Letters that arrive before the answer were not part of the question.
func TestDiscard_LeavesLettersThatArriveMeanwhile(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	i := roottest.Invocation{Env: map[string]string{"SIDING_BROKERS": b.Addr}, Stdin: "5\n"}
	i.Typed = func() { b.Produce(t, roottest.Letter("orders.dlq", 0, 0, headers.Meta{Class: "later"})) }
	got := i.Run(t, "discard", "orders.dlq", "--why", "x", "-o", "json")
	roottest.Prints(t, got, cli.ExitDone, `"discarded":5,`, "type 5 to continue:\n")
	b.WantOpen(t, "0:4")
}

// What was typed for is not there any more: the operator has to look again.
func TestDiscard_RefusesIfALetterHasAnOutcomeMeanwhile(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	i := roottest.Invocation{Env: map[string]string{"SIDING_BROKERS": b.Addr}, Stdin: "5\n"}
	i.Typed = func() {
		b.Record(t, 1, 2, dlq.Entry{State: dlq.Compensated, At: clitest.Noon, By: "ada", Why: "refunded"})
	}
	got := i.Run(t, "discard", "orders.dlq", "--why", "x")
	roottest.Prints(t, got, cli.ExitRefused, "", "nothing was discarded: 1 of the 5 letters changed since they were counted; orders.dlq/1/2 is compensated by now: run discard again")
	b.WantOpen(t, "0:1 0:3 1:0 1:1")
}

func TestDiscard_DoesNothingUnlessItShould(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	for _, c := range []struct {
		args []string
		typed,
		want string
		code int
	}{
		{[]string{"--why", "x"}, "", "5 was not typed, nothing was done", cli.ExitRefused},
		{[]string{"--why", "x"}, "7\n", `"7" is not 5, nothing was done`, cli.ExitRefused},
		{[]string{"--yes"}, "", "--why is missing: the ledger records the reason", cli.ExitUsage},
		{[]string{"--why", "x", "--by", "", "--yes"}, "", `invalid argument "" for "--by" flag: the value is empty`, cli.ExitUsage},
		{[]string{"--why", "x", "--class", "none", "--yes"}, "", "nothing was discarded: no open letter of orders.dlq fits", cli.ExitRefused},
		{[]string{"--why", "x", "--yes", "--ledger-name", "{topic}.fates"}, "", "topic orders.fates does not exist, so nothing can be recorded", cli.ExitError},
	} {
		i := roottest.Invocation{Env: map[string]string{"SIDING_BROKERS": b.Addr}, Stdin: c.typed}
		got := i.Run(t, append([]string{"discard", "orders.dlq"}, c.args...)...)
		roottest.Prints(t, got, c.code, "", c.want, c.args)
	}
	b.Produce(t, &kgo.Record{Topic: "orders.dlq.ledger", Partition: 1, Key: []byte("0"), Value: []byte(`{"v":9}`)})
	roottest.Prints(t, b.Redrive(t, "discard", "orders.dlq", "--why", "x", "--yes"), cli.ExitError, "", "a newer siding wrote it")
	b.WantOpen(t, "0:1 0:3 1:0 1:1 1:2")
}

func TestDiscard_NamesWhatItMayNotWrite(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.TopicAuthorizationFailed, Count: -1})
	roottest.Prints(t, b.Redrive(t, "discard", "orders.dlq", "--why", "x", "--yes"), cli.ExitError, "", "redrive: not authorized: the user needs WRITE on topic orders.dlq.ledger")
}

// The copy is outside of the range of --offset, and would be open once its letter has expired.
func TestDiscard_RecordsCopiesThatNoFlagNames(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	if got := b.Redrive(t, "discard", "orders.dlq", "--offset", "0:1", "--why", "sold-out", "--yes"); got.Code != cli.ExitDone {
		t.Fatalf("%+v", got)
	}
	if err := b.DeleteRecords("orders.dlq", 0, 2); err != nil {
		t.Fatal(err)
	}
	if open := b.OpenLetters(t); !strings.HasPrefix(open, "0:3 ") {
		t.Errorf("open are %s", open)
	}
}

// An operator who names a letter has to learn what became of it, and not only that it does not fit.
func TestDiscard_ShowsHowANamedLetterWasResolved(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	roottest.Prints(t, b.Redrive(t, "discard", "orders.dlq", "--offset", "1:1", "--why", "refunded", "--by", "ada", "--compensated", "--yes", "-o", "json"), cli.ExitDone, `"compensated":1,`, "")
	const how = "letter orders.dlq/1/1: ada recorded at 2"
	for _, args := range []string{"discard orders.dlq --offset 1:1 --why x --yes", "plan orders.dlq --offset 1:1", "run orders.dlq --offset 1:1"} {
		got := b.Redrive(t, strings.Fields(args)...)
		roottest.Prints(t, got, cli.ExitRefused, "", how)
		roottest.Prints(t, got, cli.ExitRefused, "", " that it is compensated: refunded; reopen it first")
	}
	// The reason is text of another person, and must not reach the terminal as it is.
	roottest.Prints(t, b.Redrive(t, "discard", "orders.dlq", "--offset", "0:0", "--why", "x", "--yes"), cli.ExitRefused, "", `ada discarded it at 2026-11-20T11:59:00Z: paid\x1b[2J by hand; reopen it first`)
}

func TestMain(m *testing.M) { roottest.RunTests(m) }
