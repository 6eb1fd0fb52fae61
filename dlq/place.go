package dlq

import (
	"github.com/sidingkafka/siding/headers"
)

// place is the partition and offset of a letter.
type place struct {
	partition int32
	offset    int64
}

// position returns a place with its topic.
func position(topic string, at place) headers.Position {
	return headers.Position{Topic: topic, Partition: at.partition, Offset: at.offset}
}

// last compares two values: true comes after false.
func last(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
