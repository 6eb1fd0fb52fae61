package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
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

// answerLooks answers a consumer's polls of its topics in the broker's place, while on.
func answerLooks(k *consumertest.Kafka, on *atomic.Bool, answer func(*kmsg.MetadataResponseTopic) error) {
	k.Cluster.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
		k.Cluster.KeepControl()
		r := req.(*kmsg.MetadataRequest)
		if !on.Load() || len(r.Topics) < 3 { // else it is not the look's
			return nil, nil, false
		}
		resp := r.ResponseKind().(*kmsg.MetadataResponse)
		for _, asked := range r.Topics {
			t := kmsg.NewMetadataResponseTopic()
			t.Topic = asked.Topic
			if err := answer(&t); err != nil {
				return nil, err, true
			}
			resp.Topics = append(resp.Topics, t)
		}
		return resp, nil, true
	})
}

// A fetch is refused once, and the poll that follows learns nothing. The topic was paused for the
// suspicion, and stayed paused for ever when the next poll found it unchanged.
func TestConsumerTopics_SuspicionStandsUntilResolved(t *testing.T) {
	each(t, map[string]func(*kmsg.MetadataResponseTopic) error{
		"the look finds nothing amiss": nil,
		"the look fails":               func(*kmsg.MetadataResponseTopic) error { return errors.New("connection refused") },
		"the look finds no leader":     func(t *kmsg.MetadataResponseTopic) error { t.ErrorCode = kerr.LeaderNotAvailable.Code; return nil },
	}, 1, func(t *testing.T, k *consumertest.Kafka, answer func(*kmsg.MetadataResponseTopic) error) {
		cfg := config(fine)
		log := logged(&cfg)
		cfg.Kafka = []kgo.Opt{kgo.DisableFetchSessions()}
		k.Run(cfg)
		handledOnce(k, k.Produce(many(5)...))
		time.Sleep(31 * time.Second)
		var deny, blur atomic.Bool
		denied(k, "orders", -1, &deny)
		if answer != nil {
			answerLooks(k, &blur, answer)
		}
		blur.Store(true)
		deny.Store(true)
		eventually(t, "a fetch is denied for good", func() bool { return log.with("siding: a fetch failed", "topic=orders") > 0 })
		time.Sleep(700 * time.Millisecond) // the look for it
		deny.Store(false)
		blur.Store(false)
		handledOnce(k, k.Produce(many(5)...))
	})
}

// A broker that lags denies a topic that was not recreated. Running records may finish and are
// committed before the client forgets the topic. They were cancelled, and ran again, on all
// partitions every five seconds.
func TestConsumerTopics_ForgottenSourceIsRevokedInOrder(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		var deny atomic.Bool
		var runs, cancelled atomic.Int32
		cfg := config(func(ctx context.Context, _ *kgo.Record) error {
			runs.Add(1)
			select {
			case <-ctx.Done():
				cancelled.Add(1)
				return ctx.Err()
			case <-time.After(2 * time.Second):
				return nil
			}
		})
		cfg.Kafka, cfg.CommitInterval = []kgo.Opt{kgo.DisableFetchSessions()}, time.Second
		k.Run(cfg)
		denied(k, "orders", 0, &deny)
		records := k.Produce(many(100)...)
		time.Sleep(5 * time.Second)
		deny.Store(true)
		time.Sleep(30 * time.Second)
		deny.Store(false)
		handledOnce(k, records)
		if n := cancelled.Load(); n != 0 || int(runs.Load()) != len(records) {
			t.Errorf("%d runs of %d records, %d cancelled; want each once", runs.Load(), len(records), n)
		}
	})
}

// A restarting cluster denies a topic for some seconds. A drained tier was retired for it, and not
// read again.
func TestDrainedTier_DeniedForSecondsIsStillDrained(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		cfg := config(busyOnce)
		cfg.Policy.Tiers = []time.Duration{time.Minute}
		log := logged(&cfg)
		first := k.Produce(many(20)...)
		runsUntilParked(t, k, cfg, time.Minute, first...)
		cfg.Policy.Tiers = []time.Duration{tier1}
		k.Run(cfg)
		var blur atomic.Bool
		answerLooks(k, &blur, func(t *kmsg.MetadataResponseTopic) error { t.ErrorCode = kerr.UnknownTopicOrPartition.Code; return nil })
		blur.Store(true)
		time.Sleep(20 * time.Second)
		blur.Store(false)
		handledOnce(k, first)
		k.Conserved()
		log.has(t, 0, "a drained retry topic was deleted")
	})
}

// kgo holds back a commit for a topic whose id has changed, and answers in the broker's place. That
// is the only sign if the topic was recreated before the first poll, and its lane is full and waits
// for the commit of its start. The lane waited for ever.
func TestConsumerTopics_WithheldCommitShowsARecreation(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		k.Produce(many(50)...)
		cfg := config(fine)
		cfg.MaxInFlight, cfg.Kafka = 10, []kgo.Opt{kgo.MetadataMaxAge(time.Second)}
		log := logged(&cfg)
		blind := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Count: -1, When: func(req kmsg.Request) bool {
			// all topics of the consumer: it is the request of a poll
			return len(req.(*kmsg.MetadataRequest).Topics) == 4
		}})
		refused := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Count: -1, Err: kerr.UnknownServerError})
		c := k.Begin(cfg)
		eventually(t, "the lane is full and waits", func() bool {
			l := c.Health().Lanes
			return len(l) == 1 && l[0].State == consumer.StateStarting && l[0].Queued >= cfg.MaxInFlight
		})
		k.DeleteTopic("orders")
		k.CreateTopic("orders", 1)
		eventually(t, "the client keeps its commits back", func() bool { return log.with("offsets not committed", "UNKNOWN_TOPIC_ID") > 0 })
		refused.Remove()
		blind.Remove()
		handledOnce(k, k.Produce(many(5)...))
	})
}

// Trap 15: a retry topic has fewer partitions than its source, or the source grows. The new
// partitions' lanes wait until their siblings have grown too, and begin within ten seconds. kgo
// alone polls the number of partitions every five minutes; siding makes it poll at once.
//
// Trap 35: the source grows, and a member that did not grow the siblings itself cannot write to the
// new partitions. Which member grew them is chance, so each of three gets new partitions, and each
// copies a record of them.
func TestConsumerTopics_NewPartitionsBeginInTenSeconds(t *testing.T) {
	each(t, protocols, 3, func(t *testing.T, k *consumertest.Kafka, protocol []kgo.Opt) {
		k.CreateTopic("orders.retry.900ms", 1) // with too few partitions
		cfg := config(sortOfBad)
		// as a Consumer has it, and a broker
		cfg.Kafka = slices.Concat(protocol, []kgo.Opt{kgo.FetchMaxWait(250 * time.Millisecond), kgo.HeartbeatInterval(3 * time.Second)})
		alterBroker(t, k, "group.consumer.heartbeat.interval.ms", "5000")
		log := logged(&cfg)
		var members []*consumertest.Consumer
		for range 3 {
			members = append(members, k.Run(cfg))
		}
		balanced := func(each int) func() bool {
			return func() bool {
				return !slices.ContainsFunc(members, func(c *consumertest.Consumer) bool { return len(c.Health().Lanes) != each })
			}
		}
		eventually(t, "each member has a lane", balanced(1))
		for p := range 3 {
			for _, value := range []string{"bad", "busy"} {
				k.Produce(&kgo.Record{Topic: "orders", Key: keyAmong(p, 3), Value: []byte(value)})
			}
		}
		k.Conserved() // the producers know the siblings
		growTopic(t, k, "orders", 9)
		grown := time.Now()
		for p := int32(3); p < 9; p++ {
			produceTo(t, k, p, "bad")
			produceTo(t, k, p, "busy")
		}
		for begun := false; !begun; {
			time.Sleep(50 * time.Millisecond)
			begun = true
			for p := int32(3); p < 9; p++ {
				begun = begun && k.Cluster.GroupInfo("billing").Commits["orders"][p].Offset == 2
			}
			for _, c := range members {
				for _, l := range blocked(c) {
					t.Errorf("lane %d is %s: %s", l.Partition, l.State, l.Why)
				}
			}
			if took := time.Since(grown); took > 10*time.Second {
				t.Fatalf("the new partitions have committed %v after %v, want 2 each", k.Cluster.GroupInfo("billing").Commits["orders"], took)
			}
		}
		eventually(t, "each member has three lanes", balanced(3))
		for p, info := range k.Cluster.PartitionInfos("orders.dlq") {
			if info.HighWatermark != 1 {
				t.Errorf("%d dead letters of partition %d, want 1", info.HighWatermark, p)
			}
		}
		for _, sibling := range []string{"orders.retry.300ms", "orders.retry.900ms", "orders.dlq"} {
			if got := len(k.Cluster.PartitionInfos(sibling)); got != 9 {
				t.Errorf("%s has %d partitions, want 9", sibling, got)
			}
		}
		log.has(t, 0, "a copy was refused")
	})
}

// Trap 25: retention deletes a record that waits: its copy has an old timestamp, or the tier is
// longer than its topic's retention. A copy has a timestamp of its own, and what is too short is
// refused.
func TestConsumer_RetentionKeepsWhatWaits(t *testing.T) {
	cases.Skip(t)
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		const tier = 4 * time.Hour
		cfg := config(busyOnce)
		quietly(&cfg)
		cfg.Policy.Tiers = []time.Duration{tier}
		written := time.Now().Add(-300 * 24 * time.Hour)
		c := k.Run(cfg)
		records := many(10)
		for _, r := range records {
			r.Timestamp = written
		}
		k.Produce(records...)
		for _, r := range records {
			if m := k.Parked(r, tier, ""); !m.Original.Timestamp.Equal(written) {
				t.Errorf("the copy says that the record is of %v, want %v", m.Original.Timestamp, written)
			}
		}
		for range 2 {
			k.Cluster.ApplyRetention()
			time.Sleep(tier / 2)
		}
		time.Sleep(tier / 2)
		handledOnce(k, records)
		if start := k.Cluster.PartitionInfos("orders.retry.4h")[0].LogStartOffset; start != 0 {
			t.Errorf("retention took %d copies", start)
		}
		stop(t, c)

		cfg.Provision.TierRetention = 6 * time.Hour
		cfg.Kafka = k.Opts()
		if _, err := consumer.New(cfg); err == nil || !strings.Contains(err.Error(), "before they are due") {
			t.Errorf("New says %v to a retention of 6 hours for a delay of 4, want a refusal", err)
		}
		cfg.Provision.TierRetention, cfg.Kafka = 0, nil
		alter(t, k, "orders.retry.4h", "retention.ms", "7200000")
		if err := k.Begin(cfg).Wait(); err == nil || !strings.Contains(err.Error(), "before they are due") {
			t.Errorf("Run returned %v with a topic that keeps a record for two hours and a delay of 4, want a refusal", err)
		}
	})
}

// A dead-letter topic that keeps letters too short was a line at INFO that said "siblings
// provisioned", with numbers of milliseconds, and nothing had been provisioned.
func TestProvisioner_WarnsOfWeakerSiblings(t *testing.T) {
	each(t, map[string]retrytopics.Mode{"verify": retrytopics.Verify, "create": retrytopics.Create}, 1, func(t *testing.T, k *consumertest.Kafka, mode retrytopics.Mode) {
		cfg := config(fine)
		first := logged(&cfg)
		stop(t, k.Run(cfg))
		first.has(t, 1, `level=INFO msg="siding: siblings provisioned"`, "created orders.dlq")
		first.has(t, 0, "level=WARN")
		cfg.Provision = retrytopics.Spec{Mode: mode, DLQRetention: 90 * 24 * time.Hour}
		log := logged(&cfg)
		stop(t, k.Run(cfg))
		log.has(t, 0, "siblings provisioned")
		log.has(t, 1, `level=WARN msg="siding: a sibling is weaker than Config.Provision wants`, "topic=orders.dlq ", "retention.ms=1209600000 (",
			"kafka-configs.sh", "--alter --topic orders.dlq --add-config retention.ms=7776000000")
	})
}
