package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// Bounds are where the logs of some topics start and end.
type Bounds struct {
	start, end kadm.ListedOffsets
	err        error // no broker answered
}

// Of is where the log of a partition starts and ends.
func (b Bounds) Of(topic string, partition int32) (start, end int64, err error) {
	if b.err != nil {
		return 0, 0, b.err
	}
	if start, err = OffsetIn(b.start, topic, partition); err != nil {
		return 0, 0, err
	}
	end, err = OffsetIn(b.end, topic, partition)
	return start, end, err
}

// IsPartial reports whether some brokers answered.
func IsPartial(err error) bool {
	var shards *kadm.ShardErrors
	return errors.As(err, &shards) && !shards.AllFailed
}

// OffsetIn is the offset of a partition in a list of offsets.
func OffsetIn(listed kadm.ListedOffsets, topic string, partition int32) (int64, error) {
	o, ok := listed.Lookup(topic, partition)
	switch {
	case !ok:
		return 0, fmt.Errorf("list of offsets: the broker says nothing of %s/%d", topic, partition)
	case o.Err != nil:
		return 0, fmt.Errorf("list of offsets: %s/%d: %w", topic, partition, o.Err)
	}
	return o.Offset, nil
}

// Slack is how much later than its context an answer may come that kgo does not cut off: the
// answers of the brokers that are there come with the end of the context, for which the others were
// awaited.
const Slack = 100 * time.Millisecond

// Bounds asks where the logs of topics start and end. It returns little later than ctx ends. kgo
// may not: what waits behind another request to the same broker does not look at its context.
func (c *Cluster) Bounds(ctx context.Context, topics ...string) (Bounds, error) {
	if len(topics) == 0 {
		return Bounds{}, nil
	}
	late := make(chan struct{})
	defer context.AfterFunc(ctx, func() { time.AfterFunc(Slack, func() { close(late) }) })()
	came := make(chan Bounds, 1)
	go func() { came <- c.askBounds(ctx, topics) }() // ends with the client at the latest
	select {
	case b := <-came:
		return b, b.err
	case <-late:
		err := fmt.Errorf("list of offsets: no broker answered in time: %w", context.Cause(ctx))
		return Bounds{err: err}, err
	}
}

// askBounds does so for as long as kgo takes.
func (c *Cluster) askBounds(ctx context.Context, topics []string) (b Bounds) {
	// At the same time: a broker that is silent until ctx ends would leave no time for the second.
	var wg sync.WaitGroup
	var endErr error
	wg.Go(func() {
		// The high watermark, whatever the isolation level: an open transaction's records are
		// there, if not to be read yet.
		b.end, endErr = c.admin.ListEndOffsets(ctx, topics...)
	})
	var startErr error
	b.start, startErr = c.admin.ListStartOffsets(ctx, topics...)
	wg.Wait()
	// A partition that is led by a broker which is away is missing in the answers; the others go
	// on.
	if startErr != nil && !IsPartial(startErr) {
		b.err = fmt.Errorf("list of start offsets: %w", startErr)
	} else if endErr != nil && !IsPartial(endErr) {
		b.err = fmt.Errorf("list of end offsets: %w", endErr)
	}
	return b
}
