package consumer_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/retrytopics"
)

// outage is a way to share partitions, and for how long a topic is gone before it is recreated.
type outage = cases.Pair[[]kgo.Opt, time.Duration]

var outages = cases.Cross(balancers, map[string]time.Duration{"at once": 0, "after a while": 20 * time.Second})

// Trap 27: a topic is deleted and recreated while it is consumed. kgo since 1.22 refuses to read it
// until the client forgets the old topic, and consumers read nothing of it until a restart.
func TestConsumerTopics_RecreatedSourceIsReadAgain(t *testing.T) {
	starts := map[string]consumer.Start{"start earliest": consumer.StartEarliest(), "start latest": consumer.StartLatest()}
	each(t, cases.Cross(outages, starts), 2, func(t *testing.T, k *consumertest.Kafka, c cases.Pair[outage, consumer.Start]) {
		k.CreateTopic("bills", 2)
		var done ran
		cfg := config(done.after(busyOnce))
		cfg.Kafka, cfg.Start, cfg.Topics = c.A.A, c.B, []string{"orders", "bills"}
		log := logged(&cfg)
		first, second := k.Run(cfg), k.Run(cfg)
		done.all(t, k.Produce(many(100)...))
		k.DeleteTopic("orders")
		time.Sleep(c.A.B)
		k.CreateTopic("orders", 3)
		done.reset()
		done.all(t, k.Produce(many(50)...))
		eventually(t, "all of the new topic is committed", func() bool {
			n := int64(0)
			for _, p := range k.Cluster.GroupInfo("billing").Commits["orders"] {
				n += p.Offset
			}
			return n == 50
		})
		handledOnce(k, k.Produce(&kgo.Record{Topic: "bills", Value: []byte("x")}))
		k.Conserved()
		log.has(t, 2, "level=ERROR", "a source topic was deleted and recreated", "topic=orders")
		for _, c := range []*consumertest.Consumer{first, second} {
			isOK(t, c)
		}
	})
}

// A retry topic that is deleted and recreated is read from its start.
func TestConsumerTopics_RecreatedTierIsReadAgain(t *testing.T) {
	each(t, outages, 2, func(t *testing.T, k *consumertest.Kafka, c outage) {
		var done ran
		cfg := config(done.after(busyOnce))
		cfg.Policy = consumer.Policy{Tiers: []time.Duration{tier1, time.Hour}, Breaker: noBreaker, RetryBudget: noBudget}
		cfg.Kafka, cfg.Provision.Mode = c.A, retrytopics.Verify
		log := logged(&cfg)
		provision(t, k, cfg)
		k.Run(cfg)
		handledOnce(k, k.Produce(many(100)...))
		k.DeleteTopic("orders.retry.300ms")
		time.Sleep(c.B)
		k.CreateTopic("orders.retry.300ms", 2)
		done.all(t, k.Produce(many(100)...))
		k.Conserved()
		log.has(t, 1, "level=ERROR", "a retry topic was deleted and recreated", "topic=orders.retry.300ms")
	})
}

// The operator's last step: a tier was taken out of the configuration, and is deleted while
// consumers run.
func TestDrainedTier_DeletedHoldsUpNothing(t *testing.T) {
	cases.Skip(t)
	each(t, balancers, 4, func(t *testing.T, k *consumertest.Kafka, opts []kgo.Opt) {
		cfg := config(busyOnce)
		// topics are polled as often
		cfg.Kafka = slices.Concat(opts, []kgo.Opt{kgo.HeartbeatInterval(15 * time.Second)})
		log := logged(&cfg)
		cfg.Policy.Tiers = []time.Duration{time.Minute}
		first := k.Produce(many(20)...)
		runsUntilParked(t, k, cfg, time.Minute, first...)
		cfg.Policy.Tiers = []time.Duration{tier1}
		c := k.Run(cfg)
		eventually(t, "what the tier holds is read", func() bool { return waiting(c) == len(first) })
		k.DeleteTopic("orders.retry.1m") // too early, but what is in memory is not lost
		records := slices.Concat(first, k.Produce(many(20)...))
		handledOnce(k, records)
		eventually(t, "the deletion is logged", func() bool {
			return log.with("level=INFO", "a drained retry topic was deleted", "retry_topic=orders.retry.1m") == 1
		})
		time.Sleep(10 * time.Minute)
		other := k.Run(cfg)
		// A retry that finished above its tier's floor may run again when its lane moves.
		eventually(t, "lanes have changed hands", func() bool { return len(c.Health().Lanes) == 2 && len(other.Health().Lanes) == 2 })
		handledOnce(k, k.Produce(many(20)...))
		k.Conserved()
		for _, l := range c.Health().Lanes {
			if slices.ContainsFunc(l.Offsets, func(f consumer.FeedOffsets) bool { return f.Topic == "orders.retry.1m" }) {
				t.Errorf("lane %d has the deleted topic still: %+v", l.Partition, l.Offsets)
			}
		}
		if n := log.with("not committed; the next commit includes them"); n > 2 {
			t.Errorf("the log says %d times that offsets are not committed", n)
		}
	})
}

// Evicted records cannot be fetched again from a missing topic.
func TestDrainedTier_DeletedBeyondTheBudgetIsLogged(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		var done ran
		cfg := config(done.after(busyOnce))
		cfg.Policy.Tiers = []time.Duration{10 * time.Minute}
		log := logged(&cfg)
		first := k.Produce(many(500)...)
		runsUntilParked(t, k, cfg, 10*time.Minute, first[len(first)-1])
		cfg.Policy.Tiers, cfg.MaxParkedBytes = []time.Duration{tier1}, 10_000
		expired := &expiredMeter{topic: "orders.retry.10m"}
		cfg.MeterProvider = expired
		c := k.Run(cfg)
		eventually(t, "what the tier holds is read", func() bool { return c.Health().Lanes[0].Parked == len(first) })
		k.DeleteTopic("orders.retry.10m")
		handledOnce(k, k.Produce(many(20)...))
		time.Sleep(20 * time.Minute)
		kept := 0
		for _, r := range first {
			kept += done.times(r)
		}
		if lost := expired.n.Load(); kept == 0 || lost == 0 || int64(kept)+lost != int64(len(first)) {
			t.Errorf("%d records of the tier ran and %d count as lost, want %d together", kept, lost, len(first))
		}
		log.has(t, 1, "level=ERROR", "deleted with records that were still parked", "retry_topic=orders.retry.10m")
		if n := log.with("could not fetch parked records again"); n > 1 {
			t.Errorf("the log says %d times that records cannot be fetched again", n)
		}
	})
}

// A deleted source does not hold up other sources.
func TestConsumerTopics_DeletedSourceHoldsUpNoOther(t *testing.T) {
	cases.Skip(t)
	each(t, balancers, 2, func(t *testing.T, k *consumertest.Kafka, opts []kgo.Opt) {
		k.CreateTopic("bills", 2)
		cfg := config(busyOnce)
		cfg.Kafka, cfg.Topics = opts, []string{"orders", "bills"}
		log := logged(&cfg)
		c := k.Run(cfg)
		handledOnce(k, append(k.Produce(many(20)...), k.Produce(&kgo.Record{Topic: "bills", Value: []byte("x")})...))
		k.DeleteTopic("orders")
		eventually(t, "health says so", func() bool { return slices.Equal(c.Health().Missing, []string{"orders"}) })
		if c.Health().OK {
			t.Error("health is OK without a source")
		}
		bills := func() {
			t.Helper()
			for i := range 20 {
				handledOnce(k, k.Produce(&kgo.Record{Topic: "bills", Key: fmt.Append(nil, i), Value: []byte("x")}))
			}
		}
		bills()
		second := k.Begin(config(fine)) // the group joins again without the topic
		time.Sleep(10 * time.Second)
		bills()
		_ = second.Err() // its only source does not exist
		time.Sleep(20 * time.Second)
		log.has(t, 1, "level=ERROR", "a source topic no longer exists", "topic=orders")
		if n := log.with("level=ERROR", "siding:") + log.with("level=WARN", "siding:"); n > 20 {
			t.Errorf("%d lines of warnings and errors in ten minutes", n)
		}
		k.CreateTopic("orders", 2)
		handledOnce(k, k.Produce(many(50)...))
		bills()
		isOK(t, c)
	})
}

// The lanes of new partitions started without their ledger's, and nothing tried to add them again.
// Notes of discarded records then blocked the lanes for good.
func TestConsumerTopics_LedgerThatCouldNotGrowGrowsLater(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		cfg := config(func(context.Context, *kgo.Record) error { return classify.Discard(errBusy) })
		cfg.Policy.NoteDiscards = true
		c := k.Run(cfg)
		var granted atomic.Bool
		k.Cluster.ControlKey(int16(kmsg.CreatePartitions), func(req kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			r := req.(*kmsg.CreatePartitionsRequest)
			if !granted.Load() { // the ledger alone is not in what the broker does
				r.Topics = slices.DeleteFunc(r.Topics, func(t kmsg.CreatePartitionsRequestTopic) bool { return t.Topic == "orders.dlq.ledger" })
			}
			return nil, nil, false
		})
		growTopic(t, k, "orders", 3)
		time.Sleep(time.Minute)
		if n := len(k.Cluster.PartitionInfos("orders.dlq.ledger")); n != 1 {
			t.Fatalf("the ledger has %d partitions: this tests nothing", n)
		}
		granted.Store(true)
		produceTo(t, k, 2, "x")
		committed(t, k, "orders", 2, 1)
		isOK(t, c)
	})
}

func TestConsumerTopics_LedgerIsMissedWhereNotesNeedIt(t *testing.T) {
	each(t, map[string]bool{"notes": true, "no notes": false}, 1, func(t *testing.T, k *consumertest.Kafka, notes bool) {
		cfg := config(fine)
		cfg.Policy.NoteDiscards = notes
		c := k.Run(cfg)
		k.DeleteTopic("orders.dlq.ledger")
		time.Sleep(time.Minute)
		if h := c.Health(); notes && (h.OK || !slices.Equal(h.Missing, []string{"orders.dlq.ledger"})) || !notes && !h.OK {
			t.Errorf("health is %+v", h)
		}
		k.CreateTopic("orders.dlq.ledger", 1)
		time.Sleep(time.Minute)
		isOK(t, c)
	})
}

// Under Provision.Mode Off the consumer logged that a dead-letter topic was deleted with all its
// letters, although it had never been created.
func TestConsumerTopics_UnseenTopicIsNotCalledDeleted(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		for _, topic := range []string{"orders", "orders.retry.300ms", "orders.retry.900ms"} {
			k.CreateTopic(topic, 1)
		}
		cfg := config(fine)
		cfg.Provision.Mode = retrytopics.Off
		log := logged(&cfg)
		k.Run(cfg)
		time.Sleep(time.Minute)
		log.has(t, 1, "level=ERROR", "a topic does not exist", "topic=orders.dlq")
		log.has(t, 0, "was deleted")
		k.CreateTopic("orders.dlq", 1)
		time.Sleep(time.Minute)
		k.DeleteTopic("orders.dlq")
		time.Sleep(time.Minute)
		log.has(t, 1, "a topic does not exist")
		log.has(t, 1, "level=ERROR", "was deleted", "topic=orders.dlq")
	})
}
