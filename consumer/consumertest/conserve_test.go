package consumertest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
)

// A policy that notes what it discards promises that it can be asked for later. Conserved did not
// look for the notes.
func TestKafka_ConservedCountsTheNotesOfDiscards(t *testing.T) {
	t.Parallel()
	Virtual(t, func(t *testing.T, k *Kafka) {
		k.CreateTopic("orders", 2)
		k.CreateTopic("clicks", 1)
		c := k.Run(consumer.Config{
			Group: "billing", Topics: []string{"orders", "clicks"},
			Policy:   consumer.Policy{Tiers: []time.Duration{5 * time.Second}, OnExhausted: consumer.Discard, NoteDiscards: true},
			Policies: map[string]consumer.Policy{"clicks": {OnTerminal: consumer.Discard}},
			Handler: func(_ context.Context, r *kgo.Record) error {
				switch string(r.Value) {
				case "busy":
					return classify.Retryable(errors.New("busy"))
				case "old":
					return classify.Discard(errors.New("too old"))
				case "bad":
					return classify.Terminal(errors.New("no such page"))
				}
				return nil
			},
		})
		records := k.Produce(
			&kgo.Record{Topic: "orders", Partition: 1, Value: []byte("busy")},
			&kgo.Record{Topic: "orders", Partition: 1, Value: []byte("good")},
			&kgo.Record{Topic: "orders", Partition: 1, Value: []byte("old")},
			&kgo.Record{Topic: "clicks", Value: []byte("bad")},
		)
		for _, r := range []*kgo.Record{records[0], records[2], records[3]} {
			k.Discarded(r, "")
		}
		k.Conserved()
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}

		k.DeleteTopic("orders.dlq.ledger")
		k.Patience = time.Minute
		got := messageOf(k, k.Conserved)
		for _, want := range []string{
			"2 records are not in exactly one place",
			"\norders/1/0: discarded once, and without its note in the ledger",
			"\norders/1/2: discarded once, and without its note in the ledger",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("got\n%s\nwant it to contain %q", got, want)
			}
		}
	})
}
