package consumer_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
)

// Settings of the breaker and the budget at their edges: an outage dead-letters nothing but what
// opened the breaker, and all runs after it.
func TestLane_BreakerAtTheEdgesOfItsSettings(t *testing.T) {
	each(t, map[string]consumer.Policy{
		"one run":        {Breaker: consumer.Breaker{MinRuns: 1, InARow: 1}},
		"tiny interval":  {Breaker: consumer.Breaker{Interval: 20 * time.Millisecond, MaxInterval: 40 * time.Millisecond}},
		"tiny budget":    {RetryBudget: consumer.RetryBudget{Share: 1e-9, MinPerSecond: 1}},
		"single attempt": {Breaker: consumer.Breaker{MinRuns: 10}, MaxAttempts: 1, Tiers: []time.Duration{time.Second}},
	}, 2, func(t *testing.T, k *consumertest.Kafka, p consumer.Policy) {
		var down atomic.Bool
		var done ran
		m := &mortal{k: k}
		cfg := config(done.after(func(context.Context, *kgo.Record) error {
			if down.Load() {
				return classify.Retryable(errBusy)
			}
			return nil
		}))
		cfg.Policy = p
		quietly(&cfg)
		c := k.Run(cfg)
		all := steadily(k, 20, time.Second, 20*time.Second)
		down.Store(true)
		all = append(all, steadily(k, 20, time.Second, 45*time.Second)...)
		stop(t, c) // the lanes go and come back while it is open
		c = k.Run(cfg)
		all = append(all, steadily(k, 20, time.Second, 45*time.Second)...)
		down.Store(false)
		all = append(all, steadily(k, 20, time.Second, 20*time.Second)...)
		time.Sleep(20 * time.Minute)
		missing := 0
		for _, r := range all {
			if done.times(r) == 0 {
				missing++
			}
		}
		t.Logf("%d of %d have not been handled, %d letters; %+v", missing, len(all), m.letters(), c.Health().OK)
		if missing > 500 || missing != m.letters() {
			t.Errorf("%d of %d have not been handled, %d letters", missing, len(all), m.letters())
		}
	})
}
