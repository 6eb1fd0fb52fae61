package forward

import (
	"math"
	"sync"
)

// BatchLimits are the largest batches that siblings take, as far as they are known. Without the
// limit of a topic, a batch that is too large is refused, and its copies go on one at a time:
// slower, and as safe. The zero value knows of no limit.
type BatchLimits struct {
	bytes sync.Map // int32, by topic
}

// leastBatch is the least that kgo takes for a limit, in bytes.
const leastBatch = 512

// Learn notes a topic's max.message.bytes.
func (l *BatchLimits) Learn(topic string, bytes int64) {
	l.bytes.Store(topic, int32(min(bytes, math.MaxInt32)))
}

// Within bounds the user's limit of a batch to a topic by the topic's own, in bytes before
// compression. kgo asks when it first writes to a partition.
func (l *BatchLimits) Within(users func(topic string) int32) func(topic string) int32 {
	return func(topic string) int32 {
		limit := users(topic)
		if n, ok := l.bytes.Load(topic); ok {
			limit = min(limit, max(n.(int32), leastBatch))
		}
		return limit
	}
}
