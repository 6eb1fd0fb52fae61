package resolve_test

import (
	"strings"
	"testing"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

// A filter that was too wide discarded letters. Only a record written by hand into the ledger
// opened them again.
func TestReopen_WithdrawsADiscard(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	open := b.OpenLetters(t)
	if got := b.Redrive(t, "discard", "orders.dlq", "--class", "decode", "--why", "sold-out", "--by", "ada", "--yes"); got.Code != cli.ExitDone {
		t.Fatalf("%+v", got)
	}
	i := roottest.Invocation{Env: map[string]string{"SIDING_BROKERS": b.Addr}, Stdin: "2\n"}
	got := i.Run(t, "reopen", "orders.dlq", "--class", "decode", "--why", "they are real", "-o", "json")
	want := `{"topic":"orders.dlq","reopened":2,"by":"oncall","why":"they are real"}` + "\n"
	roottest.Exactly(t, got, cli.ExitDone, want, "2 letters of orders.dlq will be reopened; type 2 to continue:\n")
	if after := b.OpenLetters(t); after != open {
		t.Errorf("open are %q, and were %q before the discard", after, open)
	}
	roottest.Prints(t, b.Redrive(t, "show", "orders.dlq", "1:1"), cli.ExitDone, "STATE         reopened", "")
	roottest.Prints(t, b.Redrive(t, "show", "orders.dlq", "1:1"), cli.ExitDone, " by oncall: they are real\n", "")
	roottest.Prints(t, b.Redrive(t, "list", "orders.dlq", "--state", "reopened"), cli.ExitDone, "1:1 ", "")
	roottest.Prints(t, b.Redrive(t, "reopen", "orders.dlq", "--class", "decode", "--why", "x", "--yes"), cli.ExitRefused, "", "nothing was reopened: no discarded letter of orders.dlq fits")
}

// After their source shrank, letters waited in lanes that no consumer can have. No verb brought
// them back.
func TestReopen_TakesPendingLettersWhoseCopiesNoConsumerCanHave(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	b.Topic(t, "orders.retry.5s", 6, nil)
	sent := func(partition int32, at int64) dlq.Entry {
		return dlq.Entry{State: dlq.Redriven, Run: "r7", At: clitest.Noon, By: "ada", Target: headers.Position{Topic: "orders.retry.5s", Partition: partition, Offset: at}}
	}
	b.Record(t, 0, 3, sent(1, 7))
	roottest.Prints(t, b.Redrive(t, "reopen", "orders.dlq", "--pending", "--why", "x", "--yes"), cli.ExitRefused, "", "nothing was reopened: no pending letter whose copy no consumer can have of orders.dlq fits")
	b.Record(t, 1, 0, sent(4, 8))
	b.Record(t, 1, 1, sent(5, 9))
	got := b.Redrive(t, "reopen", "orders.dlq", "--pending", "--why", "it shrank", "--by", "ada", "--yes", "-o", "json")
	roottest.Exactly(t, got, cli.ExitDone, `{"topic":"orders.dlq","reopened":2,"by":"ada","why":"it shrank"}`+"\n",
		"letter orders.dlq/1/0: its copy is at orders.retry.5s/4/8, and orders has no partition 4\nletter orders.dlq/1/1: its copy is at orders.retry.5s/5/9, and orders has no partition 5\n")
	roottest.Prints(t, b.Redrive(t, "show", "orders.dlq", "1:1"), cli.ExitDone, "run r7 by ada, to orders.retry.5s/5/9: it shrank\n", "")
	roottest.Prints(t, b.Redrive(t, "show", "orders.dlq", "0:3"), cli.ExitDone, "STATE         redriven", "")
}

// A colleague discards more letters, or reopens one, while reopen asks.
func TestReopen_TakesOnlyTheLettersThatItAskedAbout(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	b.Record(t, 1, 0, dlq.Entry{State: dlq.Discarded, At: clitest.Noon, By: "ada", Why: "x"})
	i := roottest.Invocation{Env: map[string]string{"SIDING_BROKERS": b.Addr}, Stdin: "2\n"}
	i.Typed = func() { b.Record(t, 1, 1, dlq.Entry{State: dlq.Discarded, At: clitest.Noon, By: "ada", Why: "x"}) }
	got := i.Run(t, "reopen", "orders.dlq", "--why", "x")
	roottest.Prints(t, got, cli.ExitDone, "REOPENED  2\n", "not reopened: 1 letter of orders.dlq came to fit after the others were counted: run reopen again for more\n")
	i.Stdin, i.Typed = "1\n", func() { b.Record(t, 1, 1, dlq.Entry{State: dlq.Reopened, At: clitest.Noon, By: "ada", Why: "x"}) }
	got = i.Run(t, "reopen", "orders.dlq", "--why", "x")
	roottest.Prints(t, got, cli.ExitRefused, "", "nothing was reopened: 1 of the 1 letter changed since they were counted; orders.dlq/1/1 is reopened by now: run reopen again\n")
}

func TestReopen_DoesNothingUnlessItShould(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	b.Record(t, 1, 0, dlq.Entry{State: dlq.Succeeded, At: clitest.Noon, Run: "r7", By: "ada"})
	b.Record(t, 1, 1, dlq.Entry{State: dlq.Compensated, At: clitest.Noon, By: "ada", Why: "refunded"})
	for _, c := range []struct {
		args        string
		typed, want string
		code        int
	}{
		{"--why x --offset 1:1", "", "1 was not typed, nothing was done", cli.ExitRefused},
		{"--offset 1:1 --yes", "", "--why is missing: the ledger records the reason", cli.ExitUsage},
		{"--why x --yes --offset 1:0", "", "nothing was reopened: letter orders.dlq/1/0: run r7 of ada redrove it, and it succeeded, as recorded at 2", cli.ExitRefused},
		{"--why x --yes --offset 1:2", "", "nothing was reopened: letter orders.dlq/1/2: it is open\n", cli.ExitRefused},
		{"--why x --yes --offset 1:77", "", "nothing was reopened: letter orders.dlq/1/77: there is no letter: the partition ends at offset 3", cli.ExitRefused},
		{"--why x --yes --state bad", "", `--state: "bad" is not a state: choose open, unknown, reopened,`, cli.ExitUsage},
	} {
		i := roottest.Invocation{Env: map[string]string{"SIDING_BROKERS": b.Addr}, Stdin: c.typed}
		got := i.Run(t, append([]string{"reopen", "orders.dlq"}, strings.Fields(c.args)...)...)
		roottest.Prints(t, got, c.code, "", c.want, c.args)
	}
	roottest.Prints(t, b.Redrive(t, "summary", "orders.dlq"), cli.ExitDone, "RESOLVED     3: 1 compensated, 1 discarded, 1 succeeded", "")
}

// The refusal said that the letter had expired or was pruned. That it was compensated, by whom and
// why, stood in the ledger.
func TestReopen_ShowsHowAPrunedLetterWasResolved(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	b.Record(t, 1, 0, dlq.Entry{State: dlq.Compensated, At: clitest.Noon, By: "ada", Why: "refunded, FIN-88"})
	b.Record(t, 1, 1, dlq.Entry{State: dlq.Succeeded, At: clitest.Noon, Run: "r7", By: "ben"})
	b.DeleteTo(t, "orders.dlq", 1, 3)
	for at, want := range map[string]string{
		"1:0": "ada recorded at 2026-11-20T12:00:00Z that it is compensated: refunded, FIN-88; its value is gone: only import can bring it back, as an open letter, from a file that prune --archive or export wrote\n",
		"1:1": "run r7 of ben redrove it, and it succeeded, as recorded at 2026-11-20T12:00:00Z; its value is gone: only import",
		"1:2": "",
	} {
		got := b.Redrive(t, "reopen", "orders.dlq", "--offset", at, "--why", "x", "--yes")
		if want != "" {
			want = "; " + want
		} else {
			want = "\n"
		}
		roottest.Prints(t, got, cli.ExitRefused, "", "nothing was reopened: letter orders.dlq/"+strings.Replace(at, ":", "/", 1)+": there is no letter any more: the partition begins at offset 3; lower ones have expired or were pruned"+want)
	}
}
