package consumer_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/consumertest"
)

// The end of a transaction may be written under a later leader than its records, as when brokers restart one after the
// other. The floor passed it with the epoch of the last record; that epoch ends before the floor, so the next start
// took the log for truncated, said so at ERROR and read it again.
func TestMarker_OfALaterEpochIsNoTruncation(t *testing.T) {
	t.Parallel()
	for name, topic := range sourceAndTier {
		t.Run(name, func(t *testing.T) {
			onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
				var log lines
				cfg := config(fine)
				cfg.Logger = log.logger()
				c := k.Run(cfg)
				cl := client(t, k, kgo.TransactionalID("tx"), kgo.MetadataMinAge(100*time.Millisecond))
				if err := cl.BeginTransaction(); err != nil {
					t.Fatal(err)
				}
				if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte("x")}).FirstErr(); err != nil {
					t.Fatal(err)
				}
				if err := k.Cluster.MoveTopicPartition(topic, 0, 0); err != nil { // to a leader of the next epoch
					t.Fatal(err)
				}
				if err := cl.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				stop(t, c)
				k.Run(cfg)
				time.Sleep(time.Minute)
				if n := log.with("truncated") + log.with("not the one that it was"); n != 0 {
					t.Errorf("a log that is whole was said to be truncated %d times", n)
				}
			})
		})
	}
}
