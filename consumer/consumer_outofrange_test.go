package consumer_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/cases"
)

// The committed offset of a restored or recreated topic lies beyond the end of the new log. kgo
// silently went back to the start. The lane, which counted from the committed offset, took all
// records for repetitions: none ran, and nothing was logged.
func TestConsumerOutOfRange_SourceCommittedBeyondItsEnd(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		setCommitted(t, k, "orders", 1000)
		records := k.Produce(many(50)...)
		deleteRecords(t, k, "orders", 10)
		cfg := config(fine)
		log := logged(&cfg)
		k.Run(cfg)
		handledOnce(k, append(records[10:], k.Produce(many(50)...)...))
		committed(t, k, "orders", 0, 100)
		log.has(t, 1, "level=ERROR", "beyond the log's end", "committed=1000", "start=10", "end=50")
	})
}

// A tier whose committed offset lies beyond its end is read from its start.
func TestConsumerOutOfRange_TierCommittedBeyondItsEnd(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders.retry.300ms", 1)
		setCommitted(t, k, "orders.retry.300ms", 1000)
		cfg := config(busyOnce)
		log := logged(&cfg)
		k.Run(cfg)
		handledOnce(k, k.Produce(many(50)...))
		committed(t, k, "orders.retry.300ms", 0, 50)
		log.has(t, 1, "level=ERROR", "beyond the log's end", "orders.retry.300ms", "committed=1000")
		k.Conserved()
	})
}

// Records of a source that retention deleted before the start are logged and counted.
func TestConsumerOutOfRange_CountsExpiredOfASource(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		records := k.Produce(many(100)...)
		setCommitted(t, k, "orders", 10)
		deleteRecords(t, k, "orders", 60)
		cfg := config(fine)
		log, expired := metered(&cfg, "orders")
		k.Run(cfg)
		handledOnce(k, records[60:])
		committed(t, k, "orders", 0, 100)
		if n, logged := expired.n.Load(), log.with("level=ERROR", "deleted by retention", "records_at_most=50"); n != 50 || logged != 1 {
			t.Errorf("%d records are counted as expired, and %d lines are logged; want 50 and one line", n, logged)
		}
	})
}

// Records of a tier that retention deleted before the start are logged and counted.
func TestConsumerOutOfRange_CountsExpiredOfATier(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		cfg := config(busyOnce)
		cfg.Policy = consumer.Policy{Tiers: []time.Duration{time.Minute}, Jitter: -1, Breaker: noBreaker, RetryBudget: noBudget}
		first := k.Run(cfg)
		records := k.Produce(many(20)...)
		committed(t, k, "orders", 0, 20)
		stop(t, first)
		deleteRecords(t, k, "orders.retry.1m", 12)
		log, expired := metered(&cfg, "orders.retry.1m")
		k.Run(cfg)
		handledOnce(k, records[12:])
		committed(t, k, "orders.retry.1m", 0, 20)
		if n, logged := expired.n.Load(), log.with("level=ERROR", "deleted by retention", "orders.retry.1m", "records_at_most=12"); n != 12 || logged != 1 {
			t.Errorf("%d records are counted as expired, and %d lines are logged; want 12 and one line", n, logged)
		}
	})
}

// Retention overtakes a lane that its handler or an operator holds up.
func TestConsumerOutOfRange_LaneOvertakenByRetention(t *testing.T) {
	each(t, map[string]func(c *consumertest.Consumer) (release func()){
		"its handler is slow": func(*consumertest.Consumer) func() { return func() {} },
		"it is paused": func(c *consumertest.Consumer) func() {
			c.Pause("orders")
			return func() { c.Resume("orders") }
		},
	}, 1, func(t *testing.T, k *consumertest.Kafka, hold func(c *consumertest.Consumer) (release func())) {
		block := make(chan struct{})
		cfg := config(until(block))
		cfg.MaxInFlight, cfg.Policy.HandlerTimeout = 10, -1
		log, expired := metered(&cfg, "orders")
		c := k.Run(cfg)
		release := hold(c)
		records := inBatches(k, 10, 10, time.Second) // the first ones fill the lane
		next := c.Health().Lanes[0].Offsets[0].Next
		if next > 60 {
			t.Fatalf("read to %d with MaxInFlight 10: the lane is not held up", next)
		}
		deleteRecords(t, k, "orders", next+25)
		time.Sleep(10 * time.Second)
		release()
		close(block)
		for i, r := range records {
			if at := int64(i); at < next || at >= next+25 {
				k.Handled(r, 1)
			}
		}
		committed(t, k, "orders", 0, 100)
		if n, logged := expired.n.Load(), log.with("level=ERROR", "deleted by retention", "records_at_most=25"); n != 25 || logged != 1 {
			t.Errorf("%d records are counted as expired, and %d lines are logged; want 25 and one line", n, logged)
		}
	})
}

// A tier whose position retention overtook continues at the log's start.
func TestConsumerOutOfRange_TierOvertakenByRetention(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		cfg := config(busyOnce)
		cfg.Policy = consumer.Policy{Tiers: []time.Duration{time.Minute}, Jitter: -1, HandlerTimeout: -1, Breaker: noBreaker, RetryBudget: noBudget}
		first := k.Run(cfg)
		records := inBatches(k, 40, 100, 100*time.Millisecond)
		committed(t, k, "orders", 0, 4000)
		stop(t, first)
		time.Sleep(10 * time.Hour)
		// Overdue records without room wait on the broker.
		release := make(chan struct{})
		cfg.Handler = until(release)
		cfg.Kafka = []kgo.Opt{kgo.FetchMaxPartitionBytes(16 << 10), kgo.FetchMaxBytes(16 << 10)}
		cfg.MaxParkedBytes = 5000
		log, expired := metered(&cfg, "orders.retry.1m")
		second := k.Run(cfg)
		time.Sleep(time.Minute)
		next := second.Health().Lanes[0].Offsets[1].Next
		if next > 1000 {
			t.Fatalf("read to %d: the tier is not held up", next)
		}
		deleteRecords(t, k, "orders.retry.1m", 3000)
		close(release)
		handledOnce(k, records[3000:])
		committed(t, k, "orders.retry.1m", 0, 4000)
		logged := log.with("level=ERROR", "deleted by retention", fmt.Sprint("records_at_most=", 3000-next))
		if n := expired.n.Load(); n < 2980 || n > 2999 || logged != 1 {
			t.Errorf("%d records are counted as expired, and %d lines are logged of those not read; want the 3,000 without those in memory, and one line", n, logged)
		}
	})
}

// Evicted records are only on the broker.
func TestConsumerOutOfRange_CountsExpiredParkedRecords(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		cfg := config(busyOnce)
		cfg.Policy = consumer.Policy{Tiers: []time.Duration{time.Minute}, Jitter: -1, Breaker: noBreaker, RetryBudget: noBudget}
		cfg.MaxParkedBytes = 5000
		log, expired := metered(&cfg, "orders.retry.1m")
		c := k.Run(cfg)
		records := k.Produce(many(100)...)
		eventually(t, "the tier is read", func() bool { return c.Health().Lanes[0].Parked == 100 })
		deleteRecords(t, k, "orders.retry.1m", 40)
		handledOnce(k, records[40:])
		committed(t, k, "orders.retry.1m", 0, 100)
		n, logged := expired.n.Load(), log.with("level=ERROR", "deleted by retention")
		if kept := 40 - n; kept < 1 || kept > 20 || logged == 0 {
			t.Errorf("%d records are counted as expired, and %d lines are logged; want those of 40 that were not in memory", n, logged)
		}
		if l := c.Health().Lanes[0]; l.Parked != 0 || l.Offsets[1].Pending != 0 {
			t.Errorf("%d records are parked and %d unfinished after all are done with", l.Parked, l.Offsets[1].Pending)
		}
	})
}

// A follower that leads too early refuses positions that are in the log. The consumer then neither
// skips records nor runs them again.
func TestConsumerOutOfRange_PositionInTheLogStays(t *testing.T) {
	each(t, sourceAndTier, 1, func(t *testing.T, k *consumertest.Kafka, topic string) {
		cfg := config(busyOnce)
		k.Run(cfg)
		records := k.Produce(many(20)...)
		handledOnce(k, records)
		refused := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: topic, Err: kerr.OffsetOutOfRange})
		// The first request for the log's bounds fails too.
		k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: topic, Count: 2, Err: kerr.UnknownServerError})
		records = append(records, inBatches(k, 5, 20, time.Second)...)
		hits(t, refused, 1)
		records = append(records, k.Produce(many(20)...)...)
		handledOnce(k, records)
		committed(t, k, "orders", 0, int64(len(records)))
		committed(t, k, "orders.retry.300ms", 0, int64(len(records)))
		k.Conserved()
	})
}

// An unclean election leaves a log that ends before the position. The records that it has there
// later never ran.
func TestConsumerOutOfRange_OtherLogIsReadFromItsStart(t *testing.T) {
	type row struct {
		topic string
		looks int
	}
	each(t, map[string]row{
		"source": {"orders", 1},
		"tier":   {"orders.retry.300ms", 2}, // its lane restarts, and asks again
	}, 1, func(t *testing.T, k *consumertest.Kafka, tt row) {
		cfg := config(busyOnce)
		log := logged(&cfg)
		k.Run(cfg)
		records := k.Produce(many(20)...)
		handledOnce(k, records)
		committed(t, k, "orders", 0, 20)
		committed(t, k, "orders.retry.300ms", 0, 20)
		shorten(k, tt.topic, 5, tt.looks)
		refused := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: tt.topic, Err: kerr.OffsetOutOfRange})
		records = append(records, k.Produce(many(20)...)...)
		hits(t, refused, 1)
		for _, r := range records[:20] {
			k.Handled(r, 2)
		}
		handledOnce(k, records[20:])
		log.has(t, 1, "level=ERROR", "replaced", "position=20", "end=5")
	})
}

// shorten makes the broker answer, so many times, that the topic ends at end and that its siblings
// are empty.
func shorten(k *consumertest.Kafka, topic string, end int64, looks int) {
	k.Cluster.ControlKey(kmsg.ListOffsets.Int16(), func(r kmsg.Request) (kmsg.Response, error, bool) {
		req := r.(*kmsg.ListOffsetsRequest)
		resp, ours := req.ResponseKind().(*kmsg.ListOffsetsResponse), false
		for _, rt := range req.Topics {
			t, p := kmsg.NewListOffsetsResponseTopic(), kmsg.NewListOffsetsResponseTopicPartition()
			t.Topic, p.Offset = rt.Topic, 0
			if rt.Topic == topic && rt.Partitions[0].Timestamp == -1 {
				ours, p.Offset = true, end
			}
			t.Partitions = append(t.Partitions, p)
			resp.Topics = append(resp.Topics, t)
		}
		if !ours {
			k.Cluster.KeepControl()
			return nil, nil, false
		}
		if looks--; looks > 0 {
			k.Cluster.KeepControl()
		}
		return resp, nil, true
	})
}

// An unclean election took the end of a log, and as much was written since. So the committed offset
// is within the log, but the new records below it never ran. On a tier they were skipped.
func TestConsumerOutOfRange_TruncatedLogIsReadFromThere(t *testing.T) {
	type notice = func(*testing.T, *consumertest.Kafka, *consumertest.Consumer, string)
	each(t, cases.Cross(map[string]notice{
		"while it is read": func(t *testing.T, k *consumertest.Kafka, _ *consumertest.Consumer, topic string) {
			hits(t, k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: topic, Err: kerr.FencedLeaderEpoch}), 1)
		},
		"while no member reads it": func(t *testing.T, k *consumertest.Kafka, c *consumertest.Consumer, _ string) {
			stop(t, c)
			k.Run(config(busyOnce))
		},
	}, sourceAndTier), 1, func(t *testing.T, k *consumertest.Kafka, tt cases.Pair[notice, string]) {
		c, topic := k.Run(config(busyOnce)), tt.B
		records := k.Produce(many(20)...)
		handledOnce(k, records)
		committed(t, k, "orders", 0, 20)
		committed(t, k, "orders.retry.300ms", 0, 20)
		// It was truncated to 5, and has as much again.
		k.Cluster.ControlKey(kmsg.OffsetForLeaderEpoch.Int16(), func(r kmsg.Request) (kmsg.Response, error, bool) {
			req := r.(*kmsg.OffsetForLeaderEpochRequest)
			if req.Topics[0].Topic != topic {
				k.Cluster.KeepControl()
				return nil, nil, false
			}
			resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
			rt, p := kmsg.NewOffsetForLeaderEpochResponseTopic(), kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			rt.Topic, p.EndOffset, p.LeaderEpoch = topic, 5, 0
			rt.Partitions = append(rt.Partitions, p)
			resp.Topics = append(resp.Topics, rt)
			return resp, nil, true
		})
		tt.A(t, k, c, topic)
		for _, r := range records[5:] {
			k.Handled(r, 2)
		}
		handledOnce(k, records[:5])
		// not before: records in flight when a lane restarts may run again
		handledOnce(k, k.Produce(many(20)...))
	})
}

// The end of a transaction may be written under a later leader than its records, as when brokers
// restart one after the other. The floor passed it with the epoch of the last record, but that
// epoch ends before the floor. So the next start took the log for truncated, logged that at ERROR
// and read it again.
func TestConsumerOutOfRange_LaterEpochIsNoTruncation(t *testing.T) {
	each(t, sourceAndTier, 1, func(t *testing.T, k *consumertest.Kafka, topic string) {
		cfg := config(fine)
		log := logged(&cfg)
		c := k.Run(cfg)
		cl := client(t, k, kgo.TransactionalID("tx"), kgo.MetadataMinAge(100*time.Millisecond))
		if err := cl.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte("x")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		// to a leader of the next epoch
		if err := k.Cluster.MoveTopicPartition(topic, 0, 0); err != nil {
			t.Fatal(err)
		}
		if err := cl.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		stop(t, c)
		k.Run(cfg)
		time.Sleep(time.Minute)
		log.has(t, 0, "truncated")
		log.has(t, 0, "replaced")
	})
}
