package redrive

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/client"
)

// judge finds out which of what is open belongs to a transaction that was committed. Copies do if the ledger tells of one, which it was
// told in the same transaction; entries of the ledger do if the copies of which they tell are visible. What is open on both sides nobody
// has seen, and its letters go again. Where it is part of this and part of that, rather a letter is sent twice than none.
func (f *fence) judge(ctx context.Context, gaps []gap) error {
	var copies []gap
	for _, g := range gaps {
		if _, known := f.stands[g]; known || g.open < 0 {
			continue
		}
		if g.topic != f.ledger {
			copies = append(copies, g)
			continue
		}
		told, err := f.told(ctx, g)
		stands := false
		if err == nil {
			stands, err = f.visible(ctx, told)
		}
		if err != nil {
			return fmt.Errorf("look at what is open on %v since offset %d: %w", g, g.open, err)
		}
		f.stands[g] = stands
	}
	if len(copies) == 0 {
		return nil
	}
	stands := map[gap]bool{}
	for r, err := range dlq.Records(ctx, f.ledger, nil, f.opts...) {
		if err != nil {
			return fmt.Errorf("look in the ledger for what is open on %v: %w", copies, err)
		}
		_, e, _ := dlq.ParseEntry(r) // a broken one has no target
		for _, g := range copies {
			stands[g] = stands[g] || e.Target.Topic == g.topic && e.Target.Partition == g.partition && e.Target.Offset >= g.open
		}
	}
	for _, g := range copies {
		f.stands[g] = stands[g]
	}
	return nil
}

// told are the copies of which those entries of the id tell that are open on a partition of the ledger.
func (f *fence) told(ctx context.Context, g gap) (copies []headers.Position, err error) {
	ends, err := f.adm.ListEndOffsets(ctx, g.topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, err
	}
	end, _ := ends.Lookup(g.topic, g.partition)
	cl, err := client.New(append(f.opts[:len(f.opts):len(f.opts)],
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{g.topic: {g.partition: kgo.NewOffset().At(g.open)}}),
		kgo.FetchIsolationLevel(kgo.ReadUncommitted()), kgo.KeepControlRecords())...)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	for at := g.open; at < end.Offset; {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			at = r.Offset + 1
			if r.ProducerID != f.id || r.Attrs.IsControl() {
				return
			}
			if _, e, err := dlq.ParseEntry(r); err == nil && e.State == dlq.Redriven {
				copies = append(copies, e.Target)
			}
		})
	}
	return copies, nil
}

// visible reports whether a committed reader sees all of the copies, and there are some.
func (f *fence) visible(ctx context.Context, copies []headers.Position) (bool, error) {
	ranges := map[string][]dlq.Range{}
	for _, c := range copies {
		ranges[c.Topic] = append(ranges[c.Topic], dlq.At(c.Partition, c.Offset))
	}
	for topic, ranges := range ranges {
		stable, err := f.adm.ListCommittedOffsets(ctx, topic)
		if err == nil {
			err = stable.Error()
		}
		if err != nil {
			return false, err
		}
		for _, r := range ranges {
			if o, _ := stable.Lookup(topic, r.Partition); o.Offset < r.Until { // who would read it waits for what is open before it
				return false, nil
			}
		}
		missing := len(ranges)
		for _, err := range dlq.Records(ctx, topic, ranges, f.opts...) {
			if err != nil {
				return false, err
			}
			missing--
		}
		if missing > 0 {
			return false, nil
		}
	}
	return len(copies) > 0, nil
}
