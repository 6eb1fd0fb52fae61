package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// Bounds are the start and end offsets of the logs of some topics.
type Bounds struct {
	start, end kadm.ListedOffsets
	err        error // no broker answered
}

// Of returns where the log of a partition starts and ends. The error names the partition whose
// leader did not answer, or that the broker refused.
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

// Slack is how much later than its context an answer may come. kgo awaits the silent brokers until
// the context ends, and only then returns the answers of the others.
const Slack = 100 * time.Millisecond

// Bounds asks the brokers where the logs of topics start and end. It returns [Slack] after ctx ends
// at the latest. kgo alone may take longer: a request that waits behind another one to the same
// broker does not see its context end. An error means that no broker answered; errors about single
// partitions come from [Bounds.Of].
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

// askBounds asks for both ends of the logs, and waits for as long as kgo takes.
func (c *Cluster) askBounds(ctx context.Context, topics []string) (b Bounds) {
	// Both requests go at once: a broker that is silent until ctx ends would leave no time for a
	// second one.
	var wg sync.WaitGroup
	var endErr error
	wg.Go(func() {
		// This is the high watermark, whatever the isolation level: records of an open transaction
		// count, though no consumer can read them yet.
		b.end, endErr = c.admin.ListEndOffsets(ctx, topics...)
	})
	var startErr error
	b.start, startErr = c.admin.ListStartOffsets(ctx, topics...)
	wg.Wait()
	// If a broker does not answer, only the partitions that it leads are missing from the answers.
	if startErr != nil && !IsPartial(startErr) {
		b.err = fmt.Errorf("list of start offsets: %w", startErr)
	} else if endErr != nil && !IsPartial(endErr) {
		b.err = fmt.Errorf("list of end offsets: %w", endErr)
	}
	return b
}
