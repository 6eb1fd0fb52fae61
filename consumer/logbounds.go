package consumer

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
)

// A position may lie outside of its log. Below the start, retention took records before they were read: the lane goes on at
// the start, and says how many. Beyond the end, the log is another one than it was (an unclean election, a restored cluster, a
// topic made anew): what was read and committed of it means nothing any more, and the lane starts anew at the log's start.
// kgo's own reset would do either in silence, and what it reads again below the old position would look like repetitions.

// bounds are where the logs of some topics start and end.
type bounds struct {
	start, end kadm.ListedOffsets
	err        error // no broker answered
}

func (b bounds) of(topic string, partition int32) (start, end int64, err error) {
	if b.err != nil {
		return 0, 0, b.err
	}
	if start, err = offsetIn(b.start, topic, partition); err != nil {
		return 0, 0, err
	}
	end, err = offsetIn(b.end, topic, partition)
	return start, end, err
}

// isPartial reports whether some brokers answered.
func isPartial(err error) bool {
	var shards *kadm.ShardErrors
	return errors.As(err, &shards) && !shards.AllFailed
}

func offsetIn(listed kadm.ListedOffsets, topic string, partition int32) (int64, error) {
	o, ok := listed.Lookup(topic, partition)
	switch {
	case !ok:
		return 0, fmt.Errorf("list of offsets: the broker says nothing of %s/%d", topic, partition)
	case o.Err != nil:
		return 0, fmt.Errorf("list of offsets: %s/%d: %w", topic, partition, o.Err)
	}
	return o.Offset, nil
}
