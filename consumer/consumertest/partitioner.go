package consumertest

// Which partition a record is produced to.

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
)

// inPlace is the context of a record that belongs on its Partition, also on 0.
type inPlace struct{ context.Context }

// partitioner uses a record's partition if that is positive or in place, and its key otherwise.
func partitioner() kgo.Partitioner {
	byKey := kgo.StickyKeyPartitioner(nil)
	return kgo.BasicConsistentPartitioner(func(topic string) func(*kgo.Record, int) int {
		keyed := byKey.ForTopic(topic)
		return func(r *kgo.Record, n int) int {
			if _, exact := r.Context.(inPlace); exact || r.Partition > 0 {
				return int(r.Partition)
			}
			return keyed.Partition(r, n)
		}
	})
}
