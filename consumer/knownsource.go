package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/sidingkafka/siding/consumer/internal/cluster"
)

// knownSource is what there was of a source before this process joined the group.
type knownSource struct {
	partitions int32
	consumed   bool // the group, or one that it was before, had an offset on it
}

// lacks reports whether a partition without an offset was added to a source that the group
// consumes. All partitions of one that it does not consume yet are new to it, and their starts are
// committed by one member sooner than by another: so what other members committed since tells
// nothing.
func (s knownSource) lacks(partition int32) bool { return s.consumed || partition >= s.partitions }

// loadKnownSources asks how the sources are, before the group is joined.
func loadKnownSources(ctx context.Context, cl *cluster.Cluster, groups groupNames, topics []string) (map[string]knownSource, error) {
	for began := time.Now(); ; {
		known, begun, err := tryLoadKnownSources(ctx, cl, groups, topics)
		if err != nil || begun || time.Since(began) >= startsAskedFor {
			return known, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(startsAskEvery):
		}
	}
}

// tryLoadKnownSources asks once. It reports whether each topic that the group consumes has an
// offset on all of its partitions.
func tryLoadKnownSources(ctx context.Context, cl *cluster.Cluster, names groupNames, topics []string) (all map[string]knownSource, begun bool, err error) {
	now, err := cl.Describe(ctx, topics)
	if err != nil {
		return nil, false, err
	}
	partitions := map[string][]int32{}
	for topic, t := range now {
		if t.Err != nil {
			return nil, false, fmt.Errorf("topic %q: %w", topic, t.Err)
		}
		for p := range t.Partitions {
			partitions[topic] = append(partitions[topic], p)
		}
	}
	groups := append(cluster.Former{cl.OffsetsOf(ctx, names.own(), partitions)}, cl.FormerOffsets(ctx, names.former(), partitions)...)
	all = map[string]knownSource{}
	begun = true
	for topic, t := range now {
		var have int32
		for p := range t.Partitions {
			_, known, err := groups.Of(topic, p)
			switch {
			case err != nil:
				return nil, false, err
			case known:
				have++
			}
		}
		all[topic] = knownSource{t.Partitions, have > 0}
		begun = begun && (have == 0 || have == t.Partitions)
	}
	return all, begun, nil
}

// Members of a group that is just beginning commit the starts of their partitions one after the
// other. So who finds some of a topic's partitions without an offset looks again for a moment.
const (
	startsAskedFor = 5 * time.Second
	startsAskEvery = 500 * time.Millisecond
)
