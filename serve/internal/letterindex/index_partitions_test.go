package letterindex_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/bubble"
	"github.com/sidingkafka/siding/serve/internal/letterindex"
)

// onBrokers runs a test on an embedded broker in virtual time: kgo asks for a while before it takes
// a partition for silent.
func onBrokers(t *testing.T, do func(t *testing.T, c *cluster, fake *kfake.Cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var network kfake.VirtualNetwork
		fake, err := bubble.NewCluster(&network, kfake.Ports(9092), kfake.SeedTopics(3, "orders.dlq", "orders.dlq.ledger"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(fake.Close)
		c := &cluster{t: t, opts: append(bubble.Opts(&network), kgo.SeedBrokers(fake.ListenAddrs()...))}
		if c.cl, err = kgo.NewClient(append(c.opts, kgo.RecordPartitioner(kgo.ManualPartitioner()))...); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.cl.Close)
		do(t, c, fake)
	})
}

// silence makes partitions of a topic have no leader.
func silence(fake *kfake.Cluster, topic string, partitions ...int32) *kfake.FaultHandle {
	return fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets, kmsg.Fetch}, Topic: topic, Partitions: partitions, Err: kerr.LeaderNotAvailable, Count: -1})
}

// resolves writes an entry that resolves a letter.
func (c *cluster) resolves(partition int32, offset int64) {
	c.t.Helper()
	e := dlq.Entry{State: dlq.Succeeded, Run: "r", At: time.Now(), By: "ada"}
	if err := c.cl.ProduceSync(c.t.Context(), e.Record("orders.dlq.ledger", partition, offset)).FirstErr(); err != nil {
		c.t.Fatal(err)
	}
}

// A partition of the topic or of its ledger that is silent hides no letter of the others. What the
// index knew of its letters stays.
func TestIndex_ReadsOnBesideASilentPartition(t *testing.T) {
	t.Parallel()
	for _, topic := range []string{"orders.dlq", "orders.dlq.ledger"} {
		for _, knew := range []bool{true, false} {
			onBrokers(t, func(t *testing.T, c *cluster, fake *kfake.Cluster) {
				for p := range int32(3) {
					c.write(2, p, "a", time.Now())
					c.resolves(p, 0)
				}
				b := letterindex.New("orders.dlq", "orders.dlq.ledger", c.opts...)
				lacks := int64(1)
				if knew {
					refreshed(t, b)
					lacks = 0
				}
				silent := silence(fake, topic, 2)
				want := func(when string, open, resolved, came int64, whole bool) {
					t.Helper()
					began := time.Now()
					err := b.Refresh(t.Context())
					s, p := b.Summary(), b.Progress()
					if s.Open != open || s.Resolved != resolved || b.Flow().Written["a"] != came || (err == nil) != whole {
						t.Errorf("%s, %s, knew %v: %d open, %d resolved, %d came, %v; want %d, %d, %d", when, topic, knew, s.Open, s.Resolved, b.Flow().Written["a"], err, open, resolved, came)
					}
					if p.Complete.IsZero() == (knew || whole) || p.Read.Before(began) || (p.Problem == nil) != whole {
						t.Errorf("%s, %s, knew %v: %+v", when, topic, knew, p)
					}
				}
				want("silent", 3-lacks, 3-lacks, 0, false)
				c.write(4, 0, "a", time.Now())
				c.resolves(1, 1)
				if topic == "orders.dlq.ledger" {
					c.write(1, 2, "a", time.Now())
					c.resolves(2, 2)
				}
				want("more", 6-lacks, 4-lacks, 4, false)
				silent.Remove()
				more := int64(0)
				if topic == "orders.dlq.ledger" {
					more = 1 // resolved
				}
				came := 4 + more
				if !knew {
					came = 4 // the others were there when the partition was first read
				}
				want("all", 6, 4+more, came, true)
			})
		}
	}
}

// What the ledger says of a letter counts, though no letter could be read at that moment: the next
// refresh does not read it again.
func TestIndex_KeepsWhatTheLedgerSaidWhileTheTopicWasSilent(t *testing.T) {
	t.Parallel()
	onBrokers(t, func(t *testing.T, c *cluster, fake *kfake.Cluster) {
		c.write(2, 0, "a", time.Now())
		b := letterindex.New("orders.dlq", "orders.dlq.ledger", c.opts...)
		refreshed(t, b)
		silent := silence(fake, "orders.dlq", 0, 1, 2)
		c.resolves(0, 1)
		before := b.Progress().Read
		if err := b.Refresh(t.Context()); err == nil || !b.Progress().Read.Equal(before) {
			t.Errorf("a refresh without letters: %v, %+v", err, b.Progress())
		}
		silent.Remove()
		refreshed(t, b)
		if s := b.Summary(); s.Open != 1 || s.Resolved != 1 {
			t.Errorf("%d open, %d resolved, want 1 and 1", s.Open, s.Resolved)
		}
	})
}
