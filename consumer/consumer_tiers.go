package consumer

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/tier"
)

// newTierEnv makes what the lanes' tiers share in this process.
func (c *Consumer) newTierEnv() *tier.Env {
	return &tier.Env{
		Budget: tier.NewBudget(c.cfg.MaxParkedBytes, c.resumeTiers),
		MaxDue: c.cfg.MaxInFlight,
		Fetch: func(ctx context.Context, p tier.Partition, from, bytes int64) ([]*kgo.Record, int64, error) {
			return c.fetcher.Fetch(ctx, p, from, bytes)
		},
		Retention: c.provisioner.retentionOf,
		Expired:   c.expired,
		Go:        c.wg.Go,
		Throttle:  &c.throttle,
	}
}

// newFetcher makes the fetcher of evicted records. It does not fetch through the retry client,
// whose fetch connections are busy with long polls.
func (c *Consumer) newFetcher() *tier.Fetcher {
	return tier.NewFetcher(c.retryCl, c.copyClients.Client, func(ctx context.Context, topic string, partition int32) (start, end int64, err error) {
		b, err := c.cluster.Bounds(ctx, topic)
		if err != nil {
			return 0, 0, err
		}
		return b.Of(topic, partition)
	})
}

// resumeTiers resumes the fetches of tiers that waited for room.
func (c *Consumer) resumeTiers(lanes []tier.Lane) {
	fetches := make([]*fetch, len(lanes))
	for i, l := range lanes {
		fetches[i] = &l.(*tierFeed).fetch // each tier.Lane is a tierFeed
	}
	c.retryPauser.apply(fetches...)
}

// warnShared logs, once a day per topic, that another group's records are in it.
func (c *Consumer) warnShared(topic string) {
	c.throttle.Once("sharing "+topic, 24*time.Hour, func() {
		c.log.Info("siding: another group shares this retry topic; its records are skipped. Add {group} to Config.Naming to separate the groups", "retry_topic", topic)
	})
}
