package serve_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/serve"
)

// A ledger is recreated under a running server. The server writes to the new one: what operators
// decide, and what it knows of incidents and classes.
func TestServer_WritesToARecreatedLedger(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := towns(t, k, "orders")
		is.lettersOf("orders", 12)
		is.serve(serve.Config{RulesFile: rules(t, hourly)})
		is.within(time.Minute, "an incident", func() bool { return is.incidents("orders.dlq", "open") == 1 })
		time.Sleep(time.Minute) // it is noted
		k.DeleteTopic("orders.dlq.ledger")
		k.CreateTopic("orders.dlq.ledger", 1)
		time.Sleep(5 * time.Minute)
		if code := is.ask(http.MethodPost, "/rules/outage/topics/orders.dlq/pause", `{"why":"deploying"}`, nil); code != http.StatusOK {
			t.Errorf("pausing a rule: %d", code)
		}
		cl, err := kgo.NewClient(append(k.Opts(), kgo.ConsumeTopics("orders.dlq.ledger"))...)
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for left := []string{"serve/alert/open", "serve/classes"}; len(left) > 0; {
			fetches := cl.PollFetches(ctx)
			if ctx.Err() != nil {
				t.Fatalf("the new ledger has no %s", left)
			}
			fetches.EachRecord(func(r *kgo.Record) {
				left = slices.DeleteFunc(left, func(note string) bool { return strings.HasSuffix(string(r.Key), note) })
			})
		}
		if n := is.incidents("orders.dlq", "open"); n != 1 {
			t.Errorf("the incident was sent %d times", n)
		}
	})
}

// The ledgers of eight topics with incidents cannot be written. The incident of another topic is
// sent as fast as ever.
func TestServer_LedgersThatCannotBeWrittenDelayNoAlert(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		sources := []string{"orders"}
		for i := range 8 {
			sources = append(sources, fmt.Sprint("a", i))
		}
		is := towns(t, k, sources...)
		node, _, err := k.Cluster.AddNode(-1, 9093)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sources {
			at := node
			if s == "orders" {
				at = 0
			}
			for topic, at := range map[string]int32{s + ".dlq": 0, s + ".dlq.ledger": at} {
				if err := k.Cluster.MoveTopicPartition(topic, 0, at); err != nil {
					t.Fatal(err)
				}
			}
		}
		k.Cluster.Control(func(r kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			if r.Key() == int16(kmsg.Produce) && k.Cluster.CurrentNode() == node {
				return nil, errors.New("it takes nothing"), true
			}
			return nil, nil, false
		})
		is.serve(serve.Config{Refresh: soonRefreshed})
		time.Sleep(time.Minute)
		for _, s := range sources[1:] {
			is.lettersOf(s, 12)
		}
		is.lettersOf("orders", 12)
		is.within(15*time.Second, "notified of orders.dlq", func() bool { return is.incidents("orders.dlq", "open") == 1 })
		for _, s := range sources[1:] {
			if n := is.incidents(s+".dlq", "open"); n != 1 {
				t.Errorf("notified %d times of %s.dlq", n, s)
			}
		}
	})
}
