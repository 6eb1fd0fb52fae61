package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// bareConsume is the loop that siding is compared with. It is written for speed by hand: a
// goroutine for each partition, fed by the poll loop, one function call for each record, one mark
// for each batch, a commit a second. It omits all that only matters to a group of several members.
func bareConsume(ctx context.Context, j job) (report, error) {
	var m meter
	handle := handler(j, newProgress(j.Data, m.begin))
	cl, err := kgo.NewClient(append(groupOpts(j), kgo.AutoCommitInterval(time.Second))...)
	if err != nil {
		return report{}, err
	}
	defer cl.Close()
	if err := feed(ctx, cl, j.Data.records(), func(records []*kgo.Record) {
		for _, r := range records {
			handle(r)
		}
		cl.MarkCommitRecords(records[len(records)-1])
	}); err != nil {
		return report{}, err
	}
	rep := m.end(j.Data.records())
	if err := cl.CommitMarkedOffsets(ctx); err != nil {
		return report{}, fmt.Errorf("committing: %w", err)
	}
	return rep, nil
}

// feed hands so many records to a goroutine for each partition, by the batch, and waits for these.
func feed(ctx context.Context, cl *kgo.Client, total int64, batch func([]*kgo.Record)) error {
	feeds := make(map[int32]chan []*kgo.Record)
	var workers sync.WaitGroup
	defer func() {
		for _, feed := range feeds {
			close(feed)
		}
		workers.Wait()
	}()
	return pollAll(ctx, cl, total, func(fetches kgo.Fetches) error {
		fetches.EachPartition(func(fp kgo.FetchTopicPartition) {
			if len(fp.Records) == 0 {
				return
			}
			feed := feeds[fp.Partition]
			if feed == nil {
				feed = make(chan []*kgo.Record, 1)
				feeds[fp.Partition] = feed
				workers.Go(func() {
					for records := range feed {
						batch(records)
					}
				})
			}
			feed <- fp.Records
		})
		return nil
	})
}

// pollAll does something with each answer until it has so many records.
func pollAll(ctx context.Context, cl *kgo.Client, total int64, do func(kgo.Fetches) error) error {
	for polled := int64(0); polled < total; {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		polled += int64(fetches.NumRecords())
		if err := do(fetches); err != nil {
			return err
		}
	}
	return nil
}

// barePool handles records as they arrive, Slots at a time, in no order: the lower bound for any
// program that keeps an order. It commits nothing before the end, since out of order only a tracker
// could.
func barePool(ctx context.Context, j job) (report, error) {
	cl, err := kgo.NewClient(groupOpts(j)...)
	if err != nil {
		return report{}, err
	}
	defer cl.Close()

	var (
		m     meter
		slots = make(chan struct{}, j.Slots)
		left  atomic.Int64
		done  = make(chan struct{})
		total = j.Data.records()
	)
	left.Store(total)
	if err := pollAll(ctx, cl, total, func(fetches kgo.Fetches) error {
		for r := range fetches.RecordsAll() {
			m.begin()
			slots <- struct{}{}
			go func() {
				time.Sleep(nap(index(r), j.Nap))
				<-slots
				if left.Add(-1) == 0 {
					close(done)
				}
			}()
		}
		cl.MarkCommitRecords(fetches.Records()...)
		return nil
	}); err != nil {
		return report{}, err
	}
	<-done
	rep := m.end(total)
	return rep, cl.CommitMarkedOffsets(ctx)
}

// groupOpts are the options of every bare program: a classic group, read committed, offsets
// committed as far as they are marked.
func groupOpts(j job) []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(j.Seeds...),
		kgo.ConsumerGroup(j.Group),
		kgo.ConsumeTopics(j.Data.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.AutoCommitMarks(),
	}
}

// bareRead reads a topic from its start to its end, committed records, and
// does nothing with them. Client, connection and all are measured, as they are
// in a summary.
func bareRead(ctx context.Context, j job) (report, error) {
	var m meter
	m.begin()
	if err := readAll(ctx, j, func(kgo.Fetches) error { return nil }); err != nil {
		return report{}, err
	}
	return m.end(j.Data.records()), nil
}

// readAll reads a topic for bareRead, and for what does something with it.
func readAll(ctx context.Context, j job, do func(kgo.Fetches) error) error {
	from := map[int32]kgo.Offset{}
	for p := range j.Data.Ends {
		from[int32(p)] = kgo.NewOffset().At(0)
	}
	cl, err := kgo.NewClient(
		kgo.SeedBrokers(j.Seeds...),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{j.Data.Topic: from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	)
	if err != nil {
		return err
	}
	defer cl.Close()
	return pollAll(ctx, cl, j.Data.records(), do)
}
