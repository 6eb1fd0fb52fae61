package txn

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/redrive/internal/bounds"
)

// unjudged reports whether a gap has an open transaction that is not judged yet.
func (f *idFence) unjudged(gaps []gap) bool {
	return slices.ContainsFunc(gaps, func(g gap) bool {
		_, known := f.judged[g]
		return !known && g.open >= 0
	})
}

// judge decides which open transactions were committed elsewhere. Copies were if the ledger has an
// entry about one of them. Entries were if all copies that they name are visible. A transaction
// that is open on both sides had no reader, and its letters are sent again. In doubt a letter is
// sent twice rather than never.
func (f *idFence) judge(ctx context.Context, gaps []gap) error {
	copies := map[headers.Position]gap{}
	commits := map[gap]bool{}
	for _, g := range gaps {
		if !f.unjudged([]gap{g}) {
			continue
		}
		left, err := f.leftOpen(ctx, g)
		if err == nil && g.topic == f.ledger {
			commits[g], err = f.visible(ctx, left)
		}
		if err != nil {
			return fmt.Errorf("read the open records on %v from offset %d: %w", g, g.open, err)
		}
		if g.topic != f.ledger {
			commits[g] = false
			for _, r := range left { // with the other producer's records between them
				copies[headers.Position{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset}] = g
			}
		}
	}
	if len(copies) > 0 {
		for r, err := range dlq.Records(ctx, f.ledger, nil, f.opts...) {
			if err != nil {
				return fmt.Errorf("read the ledger for entries about open copies: %w", err)
			}
			e := dlq.ParseLedgerRecord(r).Entry // a damaged entry has no target
			if g, redriven := copies[e.Target]; redriven {
				commits[g] = true
			}
		}
	}
	maps.Copy(f.judged, commits)
	return nil
}

// leftOpen returns the id's open records on a partition.
func (f *idFence) leftOpen(ctx context.Context, g gap) (records []*kgo.Record, err error) {
	ends, err := bounds.Ends(ctx, f.adm, []string{g.topic})
	if err != nil {
		return nil, err
	}
	cl, err := client.New(append(f.opts[:len(f.opts):len(f.opts)],
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{g.topic: {g.partition: kgo.NewOffset().At(g.open)}}),
		kgo.FetchIsolationLevel(kgo.ReadUncommitted()), kgo.KeepControlRecords())...)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	for at := g.open; at < ends[g.topic][g.partition]; {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if at = r.Offset + 1; r.ProducerID == f.id && !r.Attrs.IsControl() {
				records = append(records, r)
			}
		})
	}
	return records, nil
}

// visible reports whether entries name copies that a committed reader sees, all of them.
func (f *idFence) visible(ctx context.Context, entries []*kgo.Record) (bool, error) {
	ranges := map[string][]dlq.Range{}
	for _, r := range entries {
		// a damaged entry has no state
		if e := dlq.ParseLedgerRecord(r).Entry; e.State == dlq.Redriven {
			ranges[e.Target.Topic] = append(ranges[e.Target.Topic], dlq.At(e.Target.Partition, e.Target.Offset))
		}
	}
	for topic, ranges := range ranges {
		if readable, err := f.readable(ctx, topic, ranges); err != nil || !readable {
			return false, err
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
	return len(ranges) > 0, nil
}

// readable reports whether the run has no open transaction before the ends of the ranges, which
// would block a committed reader. An open transaction of another process is an error, until that
// process ends it.
func (f *idFence) readable(ctx context.Context, topic string, ranges []dlq.Range) (bool, error) {
	stable, err := f.adm.ListCommittedOffsets(ctx, topic)
	if err == nil {
		err = stable.Error()
	}
	if err != nil {
		return false, err
	}
	held := kadm.TopicsSet{}
	for _, r := range ranges {
		if o, _ := stable.Lookup(topic, r.Partition); o.Offset < r.Until {
			held.Add(topic, r.Partition)
		}
	}
	if len(held) == 0 {
		return true, nil
	}
	producers, err := f.adm.DescribeProducers(ctx, held)
	if err != nil {
		return false, err
	}
	for _, p := range producers[topic].Partitions {
		for id := range f.ids {
			if a, ok := p.ActiveProducers[id]; ok && a.CurrentTxnStartOffset >= 0 {
				return false, nil
			}
		}
	}
	return false, fmt.Errorf("a transaction of another process is open on %v", held.Sorted())
}
