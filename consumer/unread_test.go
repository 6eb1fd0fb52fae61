package consumer_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
)

// A partition that may not be read any more gives nothing, like an idle one, and its lane looked as if it ran.
func TestHealthTellsOfAPartitionThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, topic := range sourceAndTier {
		t.Run(name, func(t *testing.T) {
			onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
				cfg := config(busyOnce)
				cfg.Policy.Tiers = []time.Duration{tier1}
				cfg.Kafka = []kgo.Opt{kgo.DisableFetchSessions()}
				c := k.Run(cfg)
				handledOnce(k, k.Produce(many(10)...))
				time.Sleep(time.Minute)
				var deny atomic.Bool
				deny.Store(true)
				refuse(k, topic, 1, kerr.TopicAuthorizationFailed, &deny)
				blocked := func() bool { h := c.Health(); return h.Lanes[1].State == consumer.StateBlocked }
				eventually(t, "health tells", blocked)
				h := c.Health()
				if why := h.Lanes[1].Why; h.OK || h.Lanes[0].State == consumer.StateBlocked || !strings.HasPrefix(why, topic+"/1 cannot be read: TOPIC_AUTHORIZATION_FAILED") {
					t.Errorf("health is OK %v, with %+v", h.OK, h.Lanes)
				}
				deny.Store(false)
				handledOnce(k, k.Produce(many(10)...))
				time.Sleep(2 * time.Minute)
				if h := c.Health(); !h.OK {
					t.Errorf("health is %+v when the partition is read again", h)
				}
			})
		})
	}
}
