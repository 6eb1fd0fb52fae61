package look_test

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

// A run's transaction leaves a marker after the last record of each partition, and no group commits
// an offset above it. So topics showed five parked records for ever.
func TestListParked_CountsNoMarksOfTransactions(t *testing.T) {
	t.Parallel()
	b := roottest.NewBroker(t, kfake.SeedTopics(1, "orders.retry.5s")).Open(t)
	tx := b.Client(t, kgo.TransactionalID("run"))
	send := func(end func()) {
		t.Helper()
		if err := tx.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		r := roottest.Letter("orders.retry.5s", 0, 0, headers.Meta{})
		if err := tx.ProduceSync(t.Context(), r, roottest.Letter("orders.retry.5s", 0, 0, headers.Meta{})).FirstErr(); err != nil {
			t.Fatal(err)
		}
		end()
	}
	commit := func() {
		t.Helper()
		if err := client.EndTransaction(t.Context(), tx, kgo.TryCommit, roottest.Letter("orders.retry.5s", 0, 0, headers.Meta{})); err != nil {
			t.Fatal(err)
		}
	}
	shows := func(when, table, json string) {
		t.Helper()
		if got := b.Redrive(t, "topics", "--parked"); got.Code != cli.ExitDone || got.Stderr != "" || !strings.Contains(strings.Join(strings.Fields(got.Stdout), " "), table) {
			t.Errorf("%s: %+v, want %s", when, got, table)
		}
		roottest.Prints(t, b.Redrive(t, "topics", "--parked", "-o", "jsonl"), cli.ExitDone, `"group":"billing",`+json, "", when, json)
	}
	send(commit)
	b.Commit(t, "billing", "orders.retry.5s", 0, 2)
	b.Commit(t, "mail", "orders.retry.5s", 0, 1)
	shows("all is handled", "billing 0 orders.retry.5s orders 5s 1 mail 1", `"parked":0,"exact":true}`)
	send(commit)
	shows("two more", "billing 2", `"parked":2,"exact":true}`)
	send(func() {})
	shows("a transaction is open", "billing <= 4", `"parked":4,"exact":false}`)
	commit()
	b.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.TopicAuthorizationFailed, Count: -1})
	shows("it may not be read", "billing <= 7", `"parked":7,"exact":false}`)
}

// Two groups share the default retry topics. One of them ran once and stopped, so it has offsets
// there: the records of the other one counted as its own, and as exact.
func TestListParked_CountsARecordForTheGroupThatItNames(t *testing.T) {
	t.Parallel()
	const tier = "orders.retry.5s"
	b := roottest.NewBroker(t, kfake.SeedTopics(1, tier)).Open(t)
	for range 3 {
		b.Produce(t, roottest.Letter(tier, 0, 0, headers.Meta{Group: "payd"}))
	}
	b.Produce(t, roottest.Letter(tier, 0, 0, headers.Meta{Group: "ledgerd"}), roottest.Letter(tier, 0, 0, headers.Meta{}))
	b.Commit(t, "payd", tier, 0, 1)
	b.Commit(t, "badconf", tier, 0, 0)
	got := b.Redrive(t, "topics", "--parked", "-o", "jsonl")
	roottest.Prints(t, got, cli.ExitDone, `"group":"payd","parked":3,"exact":true}`, "", "two of its own, and the record without a group")
	roottest.Prints(t, got, cli.ExitDone, `"group":"badconf","parked":1,"exact":true}`, "", "the record without a group")
}
