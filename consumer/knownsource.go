package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/sidingkafka/siding/consumer/internal/backoff"
	"github.com/sidingkafka/siding/consumer/internal/cluster"
)

// knownSource is the state of a source before this process joined the group.
type knownSource struct {
	partitions int32
	consumed   bool // the group or a former group had an offset on it
}

// lacks reports whether a partition without an offset was added to a source that the group
// consumes. While the group does not consume the source yet, only partitions beyond the known ones
// count as added. Its members commit their starts at different times, so offsets committed since
// prove nothing.
func (s knownSource) lacks(partition int32) bool { return s.consumed || partition >= s.partitions }

// loadKnownSources reads the state of the sources, before the consumer joins the group.
func loadKnownSources(ctx context.Context, cl *cluster.Cluster, groups []string, topics []string) (map[string]knownSource, error) {
	for began := time.Now(); ; {
		known, begun, err := tryLoadKnownSources(ctx, cl, groups, topics)
		if err != nil || begun || time.Since(began) >= startsAskedFor {
			return known, err
		}
		if !backoff.Wait(ctx, startsAskEvery) {
			return nil, ctx.Err()
		}
	}
}

// tryLoadKnownSources reads it once. begun reports whether each topic that the group consumes has
// an offset on all of its partitions.
func tryLoadKnownSources(ctx context.Context, cl *cluster.Cluster, names []string, topics []string) (all map[string]knownSource, begun bool, err error) {
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
	groups := cl.FormerOffsets(ctx, names, partitions)
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

// Members of a new group commit the starts of their partitions one after the other. A consumer that
// finds only some of a topic's partitions without an offset therefore looks again, for
// startsAskedFor.
const (
	startsAskedFor = 5 * time.Second
	startsAskEvery = 500 * time.Millisecond
)
