package run_test

import (
	"testing"

	"github.com/sidingkafka/siding/internal/ledgerrecord"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

// Of an id operators type no more than the topic.
func TestCompleteRun_ListsTheNewestFirst(t *testing.T) {
	t.Parallel()
	roottest.Virtual(t, func(t *testing.T) {
		b := roottest.InMemory(t).Aftermath(t)
		for _, run := range []string{
			`{"v":1,"id":"r-1","owner":"ada","state":"done","startedAt":"2026-11-20T10:00:00Z"}`,
			`{"v":1,"id":"r-2","owner":"ada","state":"sending","startedAt":"2026-11-20T11:00:00Z","stoppedAt":"2026-11-20T11:01:00Z"}`,
			`{"v":1,"id":"r-3","owner":"ada","state":"sending","startedAt":"2026-11-20T11:30:00Z","at":"2026-11-20T11:59:59Z"}`,
		} {
			b.Produce(t, ledgerrecord.Run("orders.dlq.ledger", run[13:16], []byte(run)))
		}
		for verb, want := range map[string]string{
			"status": "orders.dlq/r-3\tsending\norders.dlq/r-2\tstopped\norders.dlq/r-1\tdone\n:36\n",
			"resume": "orders.dlq/r-3\tsending\norders.dlq/r-2\tstopped\n:36\n",
			"abort":  "orders.dlq/r-3\tsending\norders.dlq/r-2\tstopped\n:36\n",
		} {
			if got := b.Redrive(t, "__complete", verb, "orders.dlq/"); got.Stdout != want || got.Code != cli.ExitDone {
				t.Errorf("%s: %+v, want %q", verb, got, want)
			}
		}
	})
}
