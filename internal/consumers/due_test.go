package consumers_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/commitmark"
	"github.com/sidingkafka/siding/internal/consumers"
)

// Two groups share a retry topic, one far ahead of the other: each has the due time of its own
// record. A record without one makes it unknown, not zero, and so does one that cannot be read.
func TestSeen_FindsDueTimesOfGroupsThatShareATier(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 2)
		k.CreateTopic("orders.retry.1m", 2)
		k.CreateTopic("orders.retry.5m", 2)
		cl := dial(t, k)
		parked := func(tier string, group string, due time.Time) *kgo.Record {
			m := headers.Meta{Group: group, Attempts: 1, Class: "down", FailedAt: time.Now(), FirstFailedAt: time.Now(), NotBefore: due, Original: headers.Position{Topic: "orders", Partition: 1, Timestamp: time.Now()}}
			return &kgo.Record{Topic: tier, Partition: 1, Headers: m.Append(nil)}
		}
		first, later := time.Now().Add(time.Minute).Round(time.Second), time.Now().Add(time.Hour).Round(time.Second)
		k.Produce(
			parked("orders.retry.1m", "a", later), parked("orders.retry.1m", "b", later), parked("orders.retry.1m", "b", first), parked("orders.retry.1m", "a", later),
			&kgo.Record{Topic: "orders.retry.5m", Partition: 1}, parked("orders.retry.5m", "a", first),
		)
		commit := func(group, topic string, at int64) {
			t.Helper()
			for p := range int32(2) {
				o := kadm.Offsets{}
				o.Add(kadm.Offset{Topic: topic, Partition: p, At: at * int64(p), LeaderEpoch: -1, Metadata: commitmark.Mark})
				if err := kadm.NewClient(cl).CommitAllOffsets(t.Context(), group, o); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, group := range []string{"a", "b"} {
			commit(group, "orders", 0)
		}
		commit("a", "orders.retry.1m", 0)
		commit("b", "orders.retry.1m", 2)
		commit("a", "orders.retry.5m", 0)
		commit("b", "orders.retry.5m", 1)
		seen := look(t, cl, consumers.Ask{Topics: []string{"orders"}})
		if err := seen.FindDue(t.Context(), k.Opts()...); err != nil || len(seen.Groups) != 2 {
			t.Fatalf("got %+v, %v", seen, err)
		}
		for i, want := range []time.Time{later, first} {
			tiers := seen.Groups[i].Uses[0].Tiers
			if len(tiers) != 2 || !tiers[0].NextDue.Equal(want) || !tiers[1].NextDue.IsZero() || tiers[1].Parked != int64(2-i) {
				t.Errorf("group %s has %+v, want %v", seen.Groups[i].Name, tiers, want)
			}
		}
		ctx, cancel := expired(t)
		defer cancel()
		if err := seen.FindDue(ctx, k.Opts()...); err != nil || !seen.Groups[0].Uses[0].Tiers[0].NextDue.IsZero() {
			t.Errorf("without time to read, got %+v, %v", seen, err)
		}
	})
}
