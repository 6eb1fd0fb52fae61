package consumer

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/offsets"
)

// The next lane of a partition may come to the client before the former lane has left. kgo ignored
// the new start, and read the tier on from the former lane's position. The records that had waited
// there were lost.
func TestRetryPoll_LaneBeginsBesideTheOneBefore(t *testing.T) {
	virtual(t, func(t *testing.T) {
		var vn kfake.VirtualNetwork
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.ListenFn(vn.Listen), kfake.SeedTopics(1, "orders.retry.5s"))
		if err != nil {
			t.Fatal(err)
		}
		defer cluster.Close()
		cl, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.Dialer(vn.DialContext),
			kgo.ConsumeResetOffset(kgo.NoResetOffset()), kgo.DefaultProduceTopic("orders.retry.5s"))
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		for range 10 {
			if err := cl.ProduceSync(t.Context(), kgo.StringRecord("x")).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		c := &Consumer{}
		p := newRetryPoll(c, cl)
		at := func(next int64) *lane {
			l := withFeeds(&lane{c: c, topic: "orders"})
			l.tiers()[0].tracker, l.tiers()[0].epoch = offsets.New(next, next), -1
			return l
		}
		before, after := at(0), at(2)
		p.add([]*lane{before})
		for got := 0; got < 10; {
			got += cl.PollFetches(t.Context()).NumRecords()
		}
		p.add([]*lane{after})
		p.remove([]*lane{before})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		fetches := cl.PollFetches(ctx)
		if r := fetches.Records(); len(r) == 0 || r[0].Offset != 2 {
			t.Errorf("the lane that begins at 2 is given %v first (%v)", r, fetches.Err())
		}
	})
}
