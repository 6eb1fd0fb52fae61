package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Bounds are the start and end offsets of the logs of some partitions.
type Bounds struct {
	of  map[place]bound
	err error // no broker said who leads the partitions
}

type bound struct {
	start, end int64
	err        error
}

// Of returns where the log of a partition starts and ends. The error names the partition whose
// leader did not answer, or that the broker refused.
func (b Bounds) Of(topic string, partition int32) (start, end int64, err error) {
	if b.err != nil {
		return 0, 0, b.err
	}
	at, ok := b.of[place{topic, partition}]
	switch {
	case !ok:
		return 0, 0, fmt.Errorf("list of offsets: nobody asked for %s/%d", topic, partition)
	case at.err != nil:
		return 0, 0, fmt.Errorf("list of offsets: %s/%d: %w", topic, partition, at.err)
	}
	return at.start, at.end, nil
}

// IsPartial reports whether err means that some brokers answered and others did not.
func IsPartial(err error) bool {
	var shards *kadm.ShardErrors
	return errors.As(err, &shards) && !shards.AllFailed
}

// OffsetIn returns the offset of a partition in a list of offsets. Its errors name the partition.
func OffsetIn(listed kadm.ListedOffsets, topic string, partition int32) (int64, error) {
	o, ok := listed.Lookup(topic, partition)
	switch {
	case !ok:
		return 0, fmt.Errorf("list of offsets: the answers do not contain %s/%d", topic, partition)
	case o.Err != nil:
		return 0, fmt.Errorf("list of offsets: %s/%d: %w", topic, partition, o.Err)
	}
	return o.Offset, nil
}

const (
	// boundsTries is how often Bounds asks about a partition whose leader moved meanwhile.
	boundsTries = 3
	// boundsRetry is the time between two of these tries.
	boundsRetry = 250 * time.Millisecond
)

// Bounds asks the leaders of partitions where their logs start and end. A leader that is silent
// until ctx ends, or that is not known, leaves only its own partitions without an answer: Bounds
// returns then at the latest. An error means that no broker said who leads the partitions; errors
// about single partitions come from [Bounds.Of].
//
// The end is the high watermark, whatever the isolation level: records of an open transaction
// count, though no consumer can read them yet.
func (c *Cluster) Bounds(ctx context.Context, partitions map[string][]int32) (Bounds, error) {
	return c.bounds(ctx, partitions, logStart)
}

// Stable is Bounds with the last stable offset in place of the start: up to where consumers of
// committed records can read.
func (c *Cluster) Stable(ctx context.Context, partitions map[string][]int32) (Bounds, error) {
	return c.bounds(ctx, partitions, lastStable)
}

// point is what a broker is asked for of a log: a timestamp with a meaning of its own, and the
// isolation level.
type point struct {
	timestamp int64
	isolation int8
}

var logStart, logEnd, lastStable = point{-2, 0}, point{-1, 0}, point{-1, 1}

func (c *Cluster) bounds(ctx context.Context, partitions map[string][]int32, lower point) (Bounds, error) {
	b := Bounds{of: map[place]bound{}}
	left := partitions
	for try := 1; len(left) > 0; try++ {
		now, err := c.Describe(ctx, slices.Collect(maps.Keys(left)))
		if err != nil && try == 1 {
			b.err = fmt.Errorf("list of offsets: %w", err)
			return b, b.err
		}
		left = c.askBounds(ctx, now, left, lower, b.of)
		if try == boundsTries || len(left) == 0 {
			break
		}
		select {
		case <-ctx.Done():
			return b, nil
		case <-time.After(boundsRetry):
		}
	}
	return b, nil
}

// askBounds asks the leaders of partitions, all at once, and adds their answers to found. It
// returns the partitions for which that is worth another try.
func (c *Cluster) askBounds(ctx context.Context, now map[string]Topic, partitions map[string][]int32, lower point, found map[place]bound) (again map[string][]int32) {
	byLeader := map[int32]map[string][]int32{}
	for topic, ps := range partitions {
		for _, p := range ps {
			leader, err := now[topic].leader(p)
			if err != nil {
				found[place{topic, p}] = bound{err: err}
				continue
			}
			if byLeader[leader] == nil {
				byLeader[leader] = map[string][]int32{}
			}
			byLeader[leader][topic] = append(byLeader[leader][topic], p)
		}
	}
	var mu sync.Mutex
	var asking sync.WaitGroup
	again = map[string][]int32{}
	for leader, of := range byLeader {
		asking.Go(func() {
			bounds := c.askLeader(ctx, leader, of, lower)
			mu.Lock()
			defer mu.Unlock()
			for at, b := range bounds {
				found[at] = b
				if kerr.IsRetriable(b.err) {
					again[at.topic] = append(again[at.topic], at.partition)
				}
			}
		})
	}
	asking.Wait()
	return again
}

// askLeader asks one broker for both bounds of the logs that it leads.
func (c *Cluster) askLeader(ctx context.Context, leader int32, partitions map[string][]int32, lower point) map[place]bound {
	var starts, ends map[place]offset
	// Both requests go at once: a broker that is silent until ctx ends would leave no time for a
	// second one.
	var wg sync.WaitGroup
	wg.Go(func() { ends = c.listOffsets(ctx, leader, partitions, logEnd) })
	starts = c.listOffsets(ctx, leader, partitions, lower)
	wg.Wait()
	bounds := map[place]bound{}
	for at, start := range starts {
		bounds[at] = bound{start.at, ends[at].at, cmp.Or(start.err, ends[at].err)}
	}
	return bounds
}

// offset is a broker's answer about one partition.
type offset struct {
	at  int64
	err error
}

// listOffsets asks a broker for the offsets of a point.
func (c *Cluster) listOffsets(ctx context.Context, leader int32, partitions map[string][]int32, at point) map[place]offset {
	req := kmsg.NewPtrListOffsetsRequest()
	req.IsolationLevel = at.isolation
	offsets := map[place]offset{}
	for topic, ps := range partitions {
		rt := kmsg.NewListOffsetsRequestTopic()
		rt.Topic = topic
		for _, p := range ps {
			rp := kmsg.NewListOffsetsRequestTopicPartition()
			rp.Partition, rp.Timestamp = p, at.timestamp
			rt.Partitions = append(rt.Partitions, rp)
			offsets[place{topic, p}] = offset{err: errors.New("the answer does not contain it")}
		}
		req.Topics = append(req.Topics, rt)
	}
	// Unlike kgo.Client.Request, this returns when ctx ends, also while another request to the
	// broker awaits its connection.
	resp, err := c.client.Broker(int(leader)).RetriableRequest(ctx, req)
	if err != nil {
		for at := range offsets {
			offsets[at] = offset{err: fmt.Errorf("broker %d: %w", leader, err)}
		}
		return offsets
	}
	for _, t := range resp.(*kmsg.ListOffsetsResponse).Topics {
		for _, p := range t.Partitions {
			offsets[place{t.Topic, p.Partition}] = offset{p.Offset, kerr.ErrorForCode(p.ErrorCode)}
		}
	}
	return offsets
}
