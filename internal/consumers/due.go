package consumers

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/internal/reserved"
)

// dueWithin bounds the reading of records that wait.
const dueWithin = 3 * time.Second

// FindDue sets when the next record of each tier is due. Of each partition it reads one record, the
// oldest that the group has not finished, with a client for each group. Where one cannot be read in
// time, or has no due time for the group, the tier's stays unknown.
func (s *Seen) FindDue(ctx context.Context, opts ...kgo.Opt) error {
	ctx, cancel := context.WithTimeout(ctx, dueWithin)
	defer cancel()
	for i := range s.Groups {
		g := &s.Groups[i]
		waits, from := map[string]*Tier{}, map[string]map[int32]kgo.Offset{}
		for j := range g.Uses {
			for k := range g.Uses[j].Tiers {
				t := &g.Uses[j].Tiers[k]
				if t.NextDue = (time.Time{}); len(t.from) == 0 || t.Parked == Unknown {
					continue
				}
				waits[t.Topic], from[t.Topic] = t, map[int32]kgo.Offset{}
				for p, at := range t.from {
					from[t.Topic][p] = kgo.NewOffset().At(at)
				}
			}
		}
		if err := findDue(ctx, g.Name, waits, from, opts); err != nil {
			return err
		}
	}
	return nil
}

func findDue(ctx context.Context, group string, waits map[string]*Tier, from map[string]map[int32]kgo.Offset, opts []kgo.Opt) error {
	left := 0
	for _, t := range waits {
		left += len(t.from)
	}
	if left == 0 {
		return nil
	}
	cl, err := client.New(append(opts[:len(opts):len(opts)],
		kgo.ConsumePartitions(from), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxPartitionBytes(1), kgo.FetchMaxWait(time.Second))...)
	if err != nil {
		return fmt.Errorf("read when records of group %q are due: %w", group, err)
	}
	defer cl.Close()
	unread, first := map[string]int{}, map[string]time.Time{}
	for topic, t := range waits {
		unread[topic] = len(t.from)
	}
	for left > 0 && ctx.Err() == nil {
		cl.PollFetches(ctx).EachPartition(func(p kgo.FetchTopicPartition) {
			_, asked := from[p.Topic][p.Partition]
			if !asked || len(p.Records) == 0 {
				return
			}
			delete(from[p.Topic], p.Partition)
			cl.PauseFetchPartitions(map[string][]int32{p.Topic: {p.Partition}})
			left--
			of, due, ok := reserved.Peek(p.Records[0].Headers)
			if !ok || string(of) != group {
				return
			}
			unread[p.Topic]--
			if was := first[p.Topic]; was.IsZero() || due.Before(was) {
				first[p.Topic] = due
			}
		})
	}
	for topic, due := range first {
		if unread[topic] == 0 {
			waits[topic].NextDue = due
		}
	}
	return nil
}
