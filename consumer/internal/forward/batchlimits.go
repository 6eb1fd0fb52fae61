package forward

import (
	"math"
	"sync"
)

// BatchLimits are the largest batches that siblings accept, as far as they are known. If a topic's
// limit is not known, the broker refuses a batch that is too large, and its copies go one at a
// time: slower, and as safe. The zero value has no limits. The methods are safe for concurrent use.
type BatchLimits struct {
	bytes sync.Map // int32, by topic
}

// leastBatch is the lowest limit that kgo accepts, in bytes.
const leastBatch = 512

// Learn registers a topic's max.message.bytes.
func (l *BatchLimits) Learn(topic string, bytes int64) {
	l.bytes.Store(topic, int32(min(bytes, math.MaxInt32)))
}

// Within returns the lower of the user's limit of a batch and the topic's own, in bytes before
// compression. kgo calls the result when it first writes to a partition.
func (l *BatchLimits) Within(users func(topic string) int32) func(topic string) int32 {
	return func(topic string) int32 {
		limit := users(topic)
		if n, ok := l.bytes.Load(topic); ok {
			limit = min(limit, max(n.(int32), leastBatch))
		}
		return limit
	}
}
