package main

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The programs of the bench wait for the last record of each partition. A partition that gets fewer
// would let them wait for ever.
func TestPartitionOf_FillsAllPartitionsAlike(t *testing.T) {
	t.Parallel()
	for _, partitions := range []int{membersFew, membersMany} {
		got := make([]int, partitions)
		for i := range membersRecords {
			got[partitionOf(i, partitions)]++
		}
		for p, n := range got {
			if want := membersRecords / partitions; n != want {
				t.Fatalf("partition %d of %d gets %d records, want %d", p, partitions, n, want)
			}
		}
	}
}

func TestCommits_KeepTheLargestCommit(t *testing.T) {
	t.Parallel()
	var c commits
	for _, r := range []struct {
		key int16
		n   int
	}{{int16(kmsg.OffsetCommit), 5}, {int16(kmsg.OffsetCommit), 9}, {int16(kmsg.OffsetCommit), 7}, {int16(kmsg.Produce), 100}} {
		c.OnBrokerWrite(kgo.BrokerMetadata{}, r.key, r.n, time.Duration(0), time.Duration(0), nil)
	}
	if got := c.most.Load(); got != 9 {
		t.Errorf("the largest commit has %d bytes, want 9", got)
	}
}
