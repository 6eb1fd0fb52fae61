package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/sidingkafka/siding/consumer/internal/cluster"
)

// loadKnownSources notes how the sources are before the group is joined, where Config.Start makes a
// difference.
func (c *Consumer) loadKnownSources(ctx context.Context) error {
	if c.cfg.Start.kind == startEarliest {
		return nil
	}
	for began := time.Now(); ; {
		begun, err := c.tryLoadKnownSources(ctx)
		if err != nil || begun || time.Since(began) >= startsAskedFor {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(startsAskEvery):
		}
	}
}

// tryLoadKnownSources reports whether each topic that the group consumes has an offset on all of
// its partitions.
func (c *Consumer) tryLoadKnownSources(ctx context.Context) (begun bool, err error) {
	now, err := c.cluster.Describe(ctx, c.cfg.Topics)
	if err != nil {
		return false, err
	}
	all := map[string][]int32{}
	for topic, t := range now {
		if t.Err != nil {
			return false, fmt.Errorf("topic %q: %w", topic, t.Err)
		}
		for p := range t.Partitions {
			all[topic] = append(all[topic], p)
		}
	}
	groups := append(cluster.Former{c.cluster.OffsetsOf(ctx, c.groups.own(), all)}, c.cluster.FormerOffsets(ctx, c.groups.former(), all)...)
	c.knownSources = map[string]knownSource{}
	begun = true
	for topic, t := range now {
		var have int32
		for p := range t.Partitions {
			_, known, err := groups.Of(topic, p)
			switch {
			case err != nil:
				return false, err
			case known:
				have++
			}
		}
		c.knownSources[topic] = knownSource{t.Partitions, have > 0}
		begun = begun && (have == 0 || have == t.Partitions)
	}
	return begun, nil
}
