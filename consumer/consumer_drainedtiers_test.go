package consumer_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/retrytopics"
)

// Trap 14: the configuration has fewer tiers or attempts than records in flight assume. A record
// that was parked under the old configuration is not lost and does not run early, and goes to the
// next step of the new one.
func TestDrainedTier_OutlivesAChangeOfThePolicy(t *testing.T) {
	const s1, m1, m2, m5, h1 = time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, time.Hour
	none := []time.Duration{}
	type row struct {
		before     []time.Duration
		parked     time.Duration // the tier that holds the records when the configuration changes
		after      consumer.Policy
		then       []time.Duration // the tiers that they go through then
		attempts   int             // when they are dead-lettered
		lastReason headers.Reason
	}
	each(t, map[string]row{
		"the same":              {before: []time.Duration{s1, m1, h1}, parked: m1, after: consumer.Policy{Tiers: []time.Duration{s1, m1, h1}}, then: []time.Duration{h1}, attempts: 4},
		"their tier is removed": {before: []time.Duration{s1, m1, h1}, parked: m1, after: consumer.Policy{Tiers: []time.Duration{s1, h1}, MaxAttempts: 4}, then: []time.Duration{h1}, attempts: 4, lastReason: headers.ReasonExhausted},
		"their tier is removed, and an attempt with it": {before: []time.Duration{s1, m1, h1}, parked: m1, after: consumer.Policy{Tiers: []time.Duration{s1, h1}}, attempts: 3, lastReason: headers.ReasonExhausted},
		"their tier is removed, it was the last":        {before: []time.Duration{s1, m1, h1}, parked: h1, after: consumer.Policy{Tiers: []time.Duration{s1, m1}, MaxAttempts: 5}, then: []time.Duration{m1}, attempts: 5},
		"all tiers but a shorter one are removed":       {before: []time.Duration{m1, m5}, parked: m5, after: consumer.Policy{Tiers: []time.Duration{s1}, MaxAttempts: 4}, then: []time.Duration{s1}, attempts: 4},
		"all tiers are removed":                         {before: []time.Duration{m1, m5}, parked: m1, after: consumer.Policy{Tiers: none}, attempts: 2},
		"a tier is added behind theirs":                 {before: []time.Duration{s1, m1}, parked: m1, after: consumer.Policy{Tiers: []time.Duration{s1, m1, m5}}, then: []time.Duration{m5}, attempts: 4},
		"a tier is added before theirs":                 {before: []time.Duration{m1, h1}, parked: m1, after: consumer.Policy{Tiers: []time.Duration{s1, m1, h1}}, then: []time.Duration{h1, h1}, attempts: 4},
		"the delay of their tier is longer now":         {before: []time.Duration{s1, m1}, parked: m1, after: consumer.Policy{Tiers: []time.Duration{s1, m2}, MaxAttempts: 4}, then: []time.Duration{m2}, attempts: 4},
		"the delay of their tier is shorter now":        {before: []time.Duration{s1, m2}, parked: m2, after: consumer.Policy{Tiers: []time.Duration{s1, m1, m5}}, then: []time.Duration{m5}, attempts: 4},
		"fewer attempts than they have":                 {before: []time.Duration{s1, m1, h1}, parked: h1, after: consumer.Policy{Tiers: []time.Duration{s1, m1, h1}, MaxAttempts: 2}, attempts: 4},
		"one attempt, and it is used up":                {before: []time.Duration{m1, h1}, parked: m1, after: consumer.Policy{Tiers: []time.Duration{m1, h1}, MaxAttempts: 1}, attempts: 2},
		"an age that they have passed":                  {before: []time.Duration{s1, m1, h1}, parked: m1, after: consumer.Policy{Tiers: []time.Duration{s1, m1, h1}, MaxAge: s1}, attempts: 3, lastReason: headers.ReasonExpired},
		"every tier is another one":                     {before: []time.Duration{m1, h1}, parked: m1, after: consumer.Policy{Tiers: []time.Duration{m2, m5}, MaxAttempts: 4}, then: []time.Duration{m2, m5}, attempts: 4},
		"a retention that is shorter than their wait":   {before: []time.Duration{s1, 6 * h1}, parked: 6 * h1, after: consumer.Policy{Tiers: []time.Duration{s1}, MaxAttempts: 4}, then: []time.Duration{s1}, attempts: 4},
	}, 2, func(t *testing.T, k *consumertest.Kafka, tt row) {
		k.Patience = 30 * 24 * time.Hour
		records := k.Produce(many(10)...)
		cfg := config(busy(t))
		quietly(&cfg)
		cfg.Policy = consumer.Policy{Tiers: tt.before, MaxAttempts: 10}
		runsUntilParked(t, k, cfg, tt.parked, records...)
		written := map[string]int64{}
		for _, tier := range tt.before {
			topic := "orders.retry." + retrytopics.FormatDelay(tier)
			written[topic] = endOf(k, topic)
		}

		cfg.Policy = tt.after
		if slices.Contains(tt.before, 6*h1) {
			cfg.Provision.TierRetention = 2 * h1
		}
		k.Run(cfg)
		time.Sleep(tt.parked) // looking for what is not there yet costs requests
		for _, r := range records {
			letter := k.DeadLettered(r, tt.lastReason)
			if letter.Attempts != tt.attempts || letter.Class == headers.ClassMalformed {
				t.Errorf("offset %d is dead-lettered after %d attempts with class %q, want %d", r.Offset, letter.Attempts, letter.Class, tt.attempts)
			}
		}
		for _, tier := range tt.after.Delays() {
			topic := "orders.retry." + retrytopics.FormatDelay(tier)
			was, times := written[topic], int64(0)
			for _, then := range tt.then {
				if then == tier {
					times++
				}
			}
			if got := endOf(k, topic) - was; got != 10*times {
				t.Errorf("%d copies were written to %s, want each record %d times", got, topic, times)
			}
		}
		for _, tier := range tt.before {
			topic := "orders.retry." + retrytopics.FormatDelay(tier)
			if got := endOf(k, topic); !slices.Contains(tt.after.Delays(), tier) && got != written[topic] {
				t.Errorf("%d copies were written to %s, which is no longer configured", got-written[topic], topic)
			}
		}
		k.Conserved()
	})
}

// A tier that left the configuration may have fewer partitions than its source, if the source grew
// later.
func TestDrainedTier_MayHaveFewerPartitions(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		cfg := config(busyOnce)
		cfg.Policy.Tiers = []time.Duration{time.Minute}
		first := k.Produce(many(20)...)
		runsUntilParked(t, k, cfg, time.Minute, first...)
		growTopic(t, k, "orders", 6)
		time.Sleep(6 * time.Minute) // until the test's own client has heard of it
		log := logged(&cfg)
		cfg.Policy.Tiers = []time.Duration{tier1}
		c := k.Run(cfg)
		var records []*kgo.Record
		for p := range int32(6) {
			records = append(records, &kgo.Record{Topic: "orders", Partition: p, Key: fmt.Append(nil, p), Value: []byte("x")})
		}
		handledOnce(k, append(first, k.Produce(records...)...))
		k.Conserved()
		for _, l := range c.Health().Lanes {
			if drains := len(l.Offsets) == 3; drains != (l.Partition < 2) {
				t.Errorf("lane %d has the feeds %+v", l.Partition, l.Offsets)
			}
		}
		log.has(t, 1, "level=INFO", "no longer configured is being drained", "retry_topic=orders.retry.1m", "records_at_most=20")
		if got := len(k.Cluster.PartitionInfos("orders.retry.1m")); got != 2 {
			t.Errorf("the drained tier has %d partitions, want the 2 that it had", got)
		}
	})
}

// Retry topics of a source that is not configured are logged once, and not read.
func TestDrainedTier_OfAnotherSourceIsReportedOnce(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("bills", 2)
		cfg := config(busyOnce)
		cfg.Topics, cfg.Policy.Tiers = []string{"orders", "bills"}, []time.Duration{time.Minute}
		bill := k.Produce(&kgo.Record{Topic: "bills", Key: []byte("x"), Value: []byte("x")})[0]
		runsUntilParked(t, k, cfg, time.Minute, bill)

		cfg.Topics = []string{"orders"}
		log := logged(&cfg)
		k.Run(cfg)
		handledOnce(k, k.Produce(many(10)...))
		log.has(t, 1, "level=WARN", "not configured", "retry_topic=bills.retry.1m", "source=bills", "records_at_most=1", "put the source back")
		log.has(t, 0, "retry_topic=orders")
	})
}

// A look at the offsets of the group that a broker refuses is repeated long before the next minute.
func TestDrainedTier_LooksAgainSoonAfterAFailure(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		k.Run(config(fine))
		handledOnce(k, k.Produce(many(1)...))
		looks := make(chan time.Time, 100)
		k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetFetch}, Count: -1, Err: kerr.GroupAuthorizationFailed, When: func(req kmsg.Request) bool {
			// else of all topics
			if g := req.(*kmsg.OffsetFetchRequest).Groups; len(g) != 1 || g[0].Topics != nil {
				return false
			}
			looks <- time.Now()
			return true
		}})
		first := <-looks
		if took := (<-looks).Sub(first); took > 20*time.Second {
			t.Errorf("the consumer looked again after %s", took)
		}
	})
}
