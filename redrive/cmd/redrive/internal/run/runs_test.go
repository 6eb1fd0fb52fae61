package run_test

import (
	"strings"
	"testing"

	"github.com/sidingkafka/siding/internal/ledgerrecord"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

// Runs shows what runs have recorded themselves; where that is old, it names the verb that asks.
func TestRuns_NamesStatusWhereLettersArePending(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	hint := "redrive status orders.dlq/r-2 checks again"
	for _, c := range []struct {
		id, record string
		want       bool
	}{
		{"r-1", `"state":"done","counts":{"selected":2,"sent":2,"succeeded":2}`, false},
		{"r-3", `"state":"sending","counts":{"selected":2,"sent":2,"pending":2}`, false},
		{"r-2", `"state":"done","counts":{"selected":2,"sent":2,"pending":2}`, true},
	} {
		b.Produce(t, ledgerrecord.Run("orders.dlq.ledger", c.id, []byte(`{"v":1,"id":"`+c.id+`","by":"ada","owner":"ada",`+c.record+`}`)))
		if got := b.Redrive(t, "runs", "orders.dlq"); got.Code != cli.ExitDone || strings.Contains(got.Stderr, hint) != c.want {
			t.Errorf("%s: %+v", c.id, got)
		}
	}
}

// A canary that failed into a retry topic aborted the run, and the table showed no failure.
func TestRuns_CountLettersThatAreRetried(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	b.Produce(t, ledgerrecord.Run("orders.dlq.ledger", "r-1", []byte(`{"v":1,"id":"r-1","by":"ada","owner":"ada","state":"aborted","counts":{"selected":2,"sent":1,"pending":1,"retrying":1}}`)))
	roottest.Prints(t, b.Redrive(t, "runs", "orders.dlq"), cli.ExitDone, "  0, 1 retried  ", "redrive status orders.dlq/r-1 checks again")
	roottest.Prints(t, b.Redrive(t, "runs", "orders.dlq", "-o", "json"), cli.ExitDone, `"failed":0,"retrying":1,`, "checks again")
}
