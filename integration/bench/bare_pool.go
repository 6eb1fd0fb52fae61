package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

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
	for polled := int64(0); polled < total; {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return report{}, err
		}
		for r := range fetches.RecordsAll() {
			m.begin()
			polled++
			slots <- struct{}{}
			go func() {
				time.Sleep(nap(index(r)))
				<-slots
				if left.Add(-1) == 0 {
					close(done)
				}
			}()
		}
		cl.MarkCommitRecords(fetches.Records()...)
	}
	<-done
	rep := m.end(total)
	return rep, cl.CommitMarkedOffsets(ctx)
}
