package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// bareConsume is the loop that siding is compared with. It is written for speed by hand: a
// goroutine for each partition, fed by the poll loop, one function call for each record, one mark
// for each batch, a commit a second. It omits all that only matters to a group of several members.
func bareConsume(ctx context.Context, j job) (report, error) {
	var m meter
	p := newProgress(j.Data, m.begin)
	handle := handler(j, p)

	cl, err := kgo.NewClient(append(groupOpts(j), kgo.AutoCommitInterval(time.Second))...)
	if err != nil {
		return report{}, err
	}
	defer cl.Close()

	var workers sync.WaitGroup
	defer workers.Wait()
	polling, stop := context.WithCancel(ctx)
	defer stop()
	polled := make(chan error, 1)
	go func() {
		feeds := make(map[int32]chan []*kgo.Record)
		defer func() {
			for _, feed := range feeds {
				close(feed)
			}
		}()
		for {
			fetches := cl.PollFetches(polling)
			if err := fetches.Err0(); err != nil {
				polled <- err
				return
			}
			var failed error
			fetches.EachPartition(func(fp kgo.FetchTopicPartition) {
				if fp.Err != nil {
					failed = fmt.Errorf("fetching %s/%d: %w", fp.Topic, fp.Partition, fp.Err)
				}
				if len(fp.Records) == 0 {
					return
				}
				feed := feeds[fp.Partition]
				if feed == nil {
					feed = make(chan []*kgo.Record, 1)
					feeds[fp.Partition] = feed
					workers.Go(func() {
						for records := range feed {
							for _, r := range records {
								handle(r)
							}
							cl.MarkCommitRecords(records[len(records)-1])
						}
					})
				}
				feed <- fp.Records
			})
			if failed != nil {
				polled <- failed
				return
			}
		}
	}()

	select {
	case <-p.done:
	case err := <-polled:
		return report{}, err
	}
	rep := m.end(j.Data.records())
	stop()
	if err := <-polled; !errors.Is(err, context.Canceled) {
		return report{}, err
	}
	workers.Wait()
	if err := cl.CommitMarkedOffsets(ctx); err != nil {
		return report{}, fmt.Errorf("committing: %w", err)
	}
	return rep, nil
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
