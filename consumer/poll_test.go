package consumer

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/offsets"
)

// A partition that is taken off a client and put on again, at an earlier offset, while a poll's records are in hand:
// the new lane took those for its first, and refused the ones in between as repetitions.
func TestPolling_IsChangedOnlyBetweenAPollAndTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPollGuard()
		poll, cancel := p.begin(t.Context())
		defer cancel()
		if poll.Err() != nil {
			t.Error("a poll is interrupted that no change waits for")
		}
		var changed, inTurn atomic.Int32
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				p.betweenPolls(func() {
					if inTurn.Add(1) != 1 {
						t.Error("two have the turn")
					}
					time.Sleep(time.Second) // a turn may wait for a broker
					inTurn.Add(-1)
					changed.Add(1)
				})
			})
		}
		synctest.Wait()
		if n := changed.Load() + inTurn.Load(); n != 0 {
			t.Errorf("%d changes while a poll's records are in hand", n)
		}
		if poll.Err() == nil {
			t.Error("the poll, which may wait for long, is not interrupted")
		}
		p.end()
		next, cancel := p.begin(t.Context())
		defer cancel()
		if n := changed.Load(); n != 3 {
			t.Errorf("the next poll began behind %d changes, want all 3", n)
		}
		wg.Wait()
		if next.Err() != nil {
			t.Error("the next poll is interrupted though no change waits")
		}
		p.end()
	})
}

// The lane that has a partition next may come to the client before the lane that had it has left: kgo passed over its
// start, the tier was read on where the lane before had come to, and the records that had waited there were lost.
func TestRetryPoll_ALaneBeginsWhereItStandsThoughTheOneBeforeIsStillThere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var vn kfake.VirtualNetwork
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.ListenFn(vn.Listen), kfake.SeedTopics(1, "tier"))
		if err != nil {
			t.Fatal(err)
		}
		defer cluster.Close()
		cl, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.Dialer(vn.DialContext),
			kgo.ConsumeResetOffset(kgo.NoResetOffset()), kgo.DefaultProduceTopic("tier"))
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		for range 10 {
			if err := cl.ProduceSync(t.Context(), kgo.StringRecord("x")).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		p := newRetryPoll(&Consumer{}, cl)
		at := func(next int64) *lane {
			l := &lane{topic: "source"}
			l.feeds = []*feed{{lane: l, topic: "source"}, {lane: l, topic: "tier", delay: 1, tracker: offsets.New(next, next), epoch: -1}}
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
