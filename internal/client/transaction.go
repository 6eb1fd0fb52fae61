package client

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// EndTransaction ends the open transaction of a client, in which these records are written.
//
// The client sends a topic's first records before it stores the topic's partitions (franz-go
// 1.22.3, storePartitionsUpdate). Where the broker answers sooner than that, the client's own
// EndTransaction finds no partition with a record: it aborts in place of a commit, and returns nil.
// So this one waits until the partitions are stored.
func EndTransaction(ctx context.Context, cl *kgo.Client, how kgo.TransactionEndTry, records ...*kgo.Record) error {
	stored := ""
	for _, r := range records {
		for r.Topic != stored {
			// An error may be of an earlier load, and the partitions not be stored yet. Stored ones
			// keep their leader through later errors.
			if leader, _, _ := cl.PartitionLeader(r.Topic, r.Partition); leader >= 0 {
				stored = r.Topic
				break
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			time.Sleep(time.Millisecond)
		}
	}
	return cl.EndTransaction(ctx, how)
}
