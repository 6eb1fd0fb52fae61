package subject_test

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/ledgerrecord"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

// A verb names each broken record of the ledger and its remedy, and uses the other records.
func TestReadLedger_ReportsABrokenLedger(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	// a record about no letter, which does no harm
	b.Produce(t, &kgo.Record{Topic: "orders.dlq.ledger", Partition: 0, Key: []byte("foo"), Value: []byte("bar")})
	b.Produce(t, &kgo.Record{Topic: "orders.dlq.ledger", Partition: 0, Key: []byte("1"), Value: []byte(`{"v":1,"sta`)})
	// The letter of a broken entry counts as open, and each verb that counts it warns of that.
	for _, args := range [][]string{{"summary", "orders.dlq"}, {"list", "orders.dlq"}, {"prune", "orders.dlq", "--yes"}, {"topics"}} {
		got := b.Redrive(t, args...)
		if got.Code != cli.ExitDone || !strings.Contains(got.Stderr, "warning: orders.dlq.ledger: the entries about 1 letter can't be read, so these letters count as open; the first: dlq: ledger record orders.dlq.ledger/0/") || !strings.Contains(got.Stderr, ` with key "1": `) {
			t.Errorf("%q: %+v", args, got)
		}
	}
	// That letter may have been redriven already, so the plan names it.
	roottest.Prints(t, b.Redrive(t, "plan", "orders.dlq", "--target", "orders", "--wait"), cli.ExitDone, "LETTERS        5\n", "warning: the entries of 1 of the letters in orders.dlq.ledger can't be read, so these letters may be redriven a second time: orders.dlq/0/1; ")
	// If a run's record cannot be read, the run may be unfinished.
	b.Produce(t, ledgerrecord.Run("orders.dlq.ledger", "r-1", []byte(`{"v":1,`)), ledgerrecord.Run("orders.dlq.ledger", "r-2", []byte(`{"v":1,"id":"r-2","state":"done","by":"ada"}`)))
	message := "run r-1 can't be read from the ledger: unexpected end of JSON input; to remove it, write a record with the key run/r-1 and no value to partition 0 of orders.dlq.ledger"
	for _, args := range [][]string{
		{"plan", "orders.dlq"},
		{"run", "orders.dlq"},
		{"discard", "orders.dlq", "--why", "x", "--yes"},
		{"prune", "orders.dlq", "--older-than", "1ms", "--yes"},
		{"import", "orders.dlq", roottest.Save(t, "")},
		{"status", "orders.dlq/r-1"},
		{"abort", "orders.dlq/r-1"},
		{"resume", "orders.dlq/r-1"},
	} {
		got := b.Redrive(t, args...)
		roottest.Prints(t, got, cli.ExitError, "", message, args)
	}
	roottest.Prints(t, b.Redrive(t, "runs", "orders.dlq", "-o", "jsonl"), cli.ExitError, `"run":"orders.dlq/r-2"`, message)
	b.WantOpen(t, "0:1 0:3 1:0 1:1 1:2")
	b.Produce(t, ledgerrecord.Run("orders.dlq.ledger", "r-1", nil)) // as the message advises
	roottest.Prints(t, b.Redrive(t, "discard", "orders.dlq", "--why", "x", "--yes"), cli.ExitDone, "DISCARDED  5\n", "warning: orders.dlq.ledger: the entries about 1 letter can't be read")
	b.Produce(t, ledgerrecord.Run("orders.dlq.ledger", "r-3", []byte(`{"v":2,"id":"r-3","state":"new"}`)))
	if got := b.Redrive(t, "plan", "orders.dlq"); got.Code != cli.ExitError || !strings.Contains(got.Stderr, "it has version 2, and this siding reads version 1: use a newer siding") || strings.Contains(got.Stderr, "to remove it") {
		t.Errorf("%+v", got)
	}
}

// Letters without a readable entry count as open, with a warning.
func TestReadLedger_WarnsOfWhatItLacks(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	b.Produce(t, &kgo.Record{Topic: "orders.dlq.ledger", Partition: 0, Key: []byte("0"), Value: []byte("{")})
	roottest.Prints(t, b.Redrive(t, "summary", "orders.dlq", "-o", "json"), cli.ExitDone, `"open":6,`, "warning: orders.dlq.ledger: the entries about 1 letter can't be read, so these letters count as open")
	b.Produce(t, &kgo.Record{Topic: "orders.dlq.ledger", Partition: 0, Key: []byte("0"), Value: []byte(`{"v":9}`)})
	roottest.Prints(t, b.Redrive(t, "summary", "orders.dlq", "-o", "json"), cli.ExitDone, `"open":6,`, "a newer siding wrote it")
	roottest.Prints(t, b.Redrive(t, "summary", "orders.dlq", "-o", "json", "--ledger-name", "{topic}.fates"), cli.ExitDone, `"open":6,`, "orders.fates does not exist: all letters of orders.dlq count as open")
}

// The operator may take a while to answer the question. A run that begins meanwhile counts.
func TestStillIdle_RefusesWhereARunBeginsMeanwhile(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	for _, args := range [][]string{{"discard", "orders.dlq", "--why", "x"}, {"prune", "orders.dlq", "--older-than", "1h"}} {
		run := func(state string) *kgo.Record {
			return ledgerrecord.Run("orders.dlq.ledger", "r-1", []byte(`{"v":1,"id":"r-1","owner":"ada","state":"`+state+`"}`))
		}
		i := roottest.Invocation{Env: map[string]string{"SIDING_BROKERS": b.Addr}, Stdin: "5\n"}
		i.Typed = func() { b.Produce(t, run("canary")) }
		before := b.OpenLetters(t)
		got := i.Run(t, args...)
		roottest.Prints(t, got, cli.ExitRefused, "", "run orders.dlq/r-1 of ada is canary", args)
		b.Produce(t, run("done"))
		b.WantOpen(t, before)
	}
}
