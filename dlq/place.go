package dlq

import (
	"github.com/sidingkafka/siding/headers"
)

// place is where a letter stands in its topic.
type place struct {
	partition int32
	offset    int64
}

// position is the place of a letter in words.
func position(topic string, at place) headers.Position {
	return headers.Position{Topic: topic, Partition: at.partition, Offset: at.offset}
}

// last orders true behind false.
func last(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
