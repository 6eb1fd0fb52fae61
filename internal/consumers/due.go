package consumers

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/internal/reserved"
)

const (
	// dueWithin bounds the reading of records that wait.
	dueWithin = 3 * time.Second
	// mostPassed bounds the records that are read of a partition on which one group stands far
	// behind another one.
	mostPassed = 1000
)

// Seen is what a look found.
type Seen struct {
	Groups []Group // in the order of their names
	// Hidden are groups of which the user may not see what they have committed.
	Hidden []string
}

// FindDue sets when the next record of each tier is due. Of each partition it reads the oldest
// record that a group has not finished, with one client for all groups. Where one cannot be read in
// time, or has no due time for the group, the tier's stays unknown.
func (s *Seen) FindDue(ctx context.Context, opts ...kgo.Opt) error {
	d := dues{from: map[string]map[int32]kgo.Offset{}, waits: map[place][]waiting{}, unread: map[*Tier]int{}, passed: map[place]int{}}
	for i := range s.Groups {
		g := &s.Groups[i]
		for j := range g.Uses {
			for k := range g.Uses[j].Tiers {
				d.add(g.Name, &g.Uses[j].Tiers[k])
			}
		}
	}
	if len(d.waits) == 0 {
		return nil
	}
	cl, err := client.New(append(opts[:len(opts):len(opts)],
		kgo.ConsumePartitions(d.from), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxBytes(4<<20), kgo.FetchMaxPartitionBytes(4<<10), kgo.FetchMaxWait(time.Second))...)
	if err != nil {
		return fmt.Errorf("read when parked records are due: %w", err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(ctx, dueWithin)
	defer cancel()
	for len(d.waits) > 0 && ctx.Err() == nil {
		cl.PollFetches(ctx).EachPartition(func(p kgo.FetchTopicPartition) {
			at := place{p.Topic, p.Partition}
			for _, r := range p.Records {
				d.take(at, r)
			}
			if len(d.waits[at]) == 0 {
				cl.PauseFetchPartitions(map[string][]int32{p.Topic: {p.Partition}})
			}
		})
	}
	for t, n := range d.unread {
		if n > 0 {
			t.NextDue = time.Time{}
		}
	}
	return nil
}

// dues are the due times that a look still wants.
type dues struct {
	from   map[string]map[int32]kgo.Offset
	waits  map[place][]waiting
	unread map[*Tier]int // partitions whose due time is not known
	passed map[place]int // records that were read
}

type place struct {
	topic     string
	partition int32
}

// waiting is a group whose first record from an offset on is wanted.
type waiting struct {
	group string
	at    int64
	tier  *Tier
}

func (d *dues) add(group string, t *Tier) {
	if t.NextDue = (time.Time{}); t.Parked == Unknown {
		return
	}
	for p, at := range t.from {
		here := place{t.Topic, p}
		d.waits[here] = append(d.waits[here], waiting{group, at, t})
		d.unread[t]++
		first := at
		for _, w := range d.waits[here] {
			first = min(first, w.at)
		}
		if d.from[t.Topic] == nil {
			d.from[t.Topic] = map[int32]kgo.Offset{}
		}
		d.from[t.Topic][p] = kgo.NewOffset().At(first)
	}
}

// take gives a record to the groups that want it.
func (d *dues) take(at place, r *kgo.Record) {
	var left []waiting
	for _, w := range d.waits[at] {
		if r.Offset < w.at {
			left = append(left, w)
			continue
		}
		of, due, ok := reserved.Peek(r.Headers)
		if !ok || string(of) != w.group {
			continue
		}
		if d.unread[w.tier]--; w.tier.NextDue.IsZero() || due.Before(w.tier.NextDue) {
			w.tier.NextDue = due
		}
	}
	if d.passed[at]++; len(left) == 0 || d.passed[at] > mostPassed {
		delete(d.waits, at)
		return
	}
	d.waits[at] = left
}
