package dlq

import (
	"github.com/sidingkafka/siding/headers"
)

// place is where a letter stands in its topic.
type place struct {
	partition int32
	offset    int64
}

func (a place) compare(b place) int {
	if a.partition != b.partition {
		return int(a.partition) - int(b.partition)
	}
	return int(min(max(a.offset-b.offset, -1), 1))
}

// position is the place of a letter in words.
func position(topic string, at place) headers.Position {
	return headers.Position{Topic: topic, Partition: at.partition, Offset: at.offset}
}
