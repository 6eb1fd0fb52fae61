package consumer

import (
	"context"
	"fmt"
	"time"
)

// loadKnownSources notes how the sources are before the group is joined, where Config.Start makes a difference.
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

// tryLoadKnownSources reports whether each topic that the group consumes has an offset on all of its partitions.
func (c *Consumer) tryLoadKnownSources(ctx context.Context) (begun bool, err error) {
	now, err := c.describe(ctx, c.cfg.Topics)
	if err != nil {
		return false, err
	}
	all := map[string][]int32{}
	for topic, t := range now {
		if t.err != nil {
			return false, fmt.Errorf("topic %q: %w", topic, t.err)
		}
		for p := range t.partitions {
			all[topic] = append(all[topic], p)
		}
	}
	groups := append(formerOffsets{c.offsetsOf(ctx, c.cfg.Group, all)}, c.formerOffsets(ctx, all)...)
	c.knownSources = map[string]knownSource{}
	begun = true
	for topic, t := range now {
		var have int32
		for p := range t.partitions {
			_, known, err := groups.of(topicPartition{topic, p})
			switch {
			case err != nil:
				return false, err
			case known:
				have++
			}
		}
		c.knownSources[topic] = knownSource{t.partitions, have > 0}
		begun = begun && (have == 0 || have == t.partitions)
	}
	return begun, nil
}
