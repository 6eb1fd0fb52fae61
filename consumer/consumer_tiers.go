package consumer

import (
	"github.com/sidingkafka/siding/consumer/internal/tier"
)

// newTierEnv makes what the lanes' tiers share in this process. connect adds the fetch of evicted
// records.
func (c *Consumer) newTierEnv() *tier.Env {
	return &tier.Env{
		Budget:    tier.NewBudget(c.cfg.MaxParkedBytes, c.resumeTiers),
		MaxDue:    c.cfg.MaxInFlight,
		Retention: c.provisioner.retentionOf,
		Expired:   c.expired,
		Go:        c.wg.Go,
		Throttle:  &c.throttle,
	}
}

// resumeTiers resumes the fetches of tiers that waited for room.
func (c *Consumer) resumeTiers(lanes []tier.Lane) {
	fetches := make([]*fetch, len(lanes))
	for i, l := range lanes {
		fetches[i] = &l.(*tierFeed).fetch // each tier.Lane is a tierFeed
	}
	c.retryPauser.apply(fetches...)
}
