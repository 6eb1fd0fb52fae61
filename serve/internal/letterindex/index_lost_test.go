package letterindex_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve/internal/letterindex"
)

// The topic lost its end between two looks, and got more letters meanwhile than it had lost: the
// index kept the lost ones, and never read those at their offsets.
func TestIndex_ReadsWhatIsAtLostOffsets(t *testing.T) {
	t.Parallel()
	onBrokers(t, func(t *testing.T, c *cluster, fake *kfake.Cluster) {
		// old brokers have no ids of topics, so a topic that is recreated looks like one whose log
		// lost its records
		c.opts = append(c.opts, kgo.MaxVersions(kversion.V2_7_0()))
		cl, err := kgo.NewClient(append(c.opts, kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		c.cl = cl
		c.write(3, 0, "lost", time.Now())
		b := letterindex.New("orders.dlq", "orders.dlq.ledger", c.opts...)
		refreshed(t, b)
		c.discard(dlq.Filter{})
		refreshed(t, b)
		if err := fake.DeleteTopic("orders.dlq"); err != nil {
			t.Fatal(err)
		}
		if err := fake.CreateTopic("orders.dlq", 3, nil); err != nil {
			t.Fatal(err)
		}
		if err := fake.MoveTopicPartition("orders.dlq", 0, 0); err != nil { // a new leader epoch
			t.Fatal(err)
		}
		c.write(4, 0, "new", time.Now())
		refreshed(t, b)
		if s := b.Summary(); s.Open != 4 || s.Resolved != 0 || s.Written["new"] != 4 {
			t.Errorf("the index has %+v, want four new letters", s)
		}
	})
}
