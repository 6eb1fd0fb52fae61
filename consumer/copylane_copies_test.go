package consumer

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer/internal/forward"
	"github.com/sidingkafka/siding/headers"
)

// The copies of a lane were within its share of MaxInFlightBytes when they were sent, and over it
// when a second lane was assigned. The lane was then skipped without being marked as full, so that
// the acknowledgement that made room woke no worker.
func TestLane_WakesWhenItsCopiesHaveRoomAgain(t *testing.T) {
	virtual(t, func(t *testing.T) {
		var vn kfake.VirtualNetwork
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "orders.dlq"), kfake.ListenFn(vn.Listen))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(cluster.Close)
		reachable := make(chan struct{})
		var ran atomic.Int64
		c := idle(t, Config{MaxInFlightBytes: 1 << 20}, func() { ran.Add(1) })
		writeWith(c, func() (*kgo.Client, error) {
			return kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
				kgo.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
					<-reachable
					return vn.DialContext(ctx, network, address)
				}))
		})
		l := held(c, 0, "m")
		l.copies.Send(forward.NewCopy(&l.source.feed, 0, kgo.Record{Topic: "orders.dlq", Value: make([]byte, 700<<10)}))
		held(c, 1, "m") // halves the share
		l.source.takePolled([]*kgo.Record{{Topic: "orders"}}, 1)
		synctest.Wait()
		if n := ran.Load(); n != 0 {
			t.Fatalf("%d records ran over the lane's share", n)
		}
		close(reachable)
		time.Sleep(time.Second)
		synctest.Wait()
		if n := ran.Load(); n != 1 {
			t.Errorf("%d records ran, want 1: there is room again", n)
		}
	})
}

// 100 runs in place with errors of 5 MiB kept 497 MiB. The history has the newest runs, and 128
// bytes of each text.
func TestCopySource_KeepsOfRunsInPlaceWhatHeadersHave(t *testing.T) {
	t.Parallel()
	var s copySource
	began := time.UnixMilli(1_800_000_000_000)
	const runs = 1000
	for n := 1; n <= runs; n++ {
		s.keepEarlier(headers.Attempt{Run: n, Class: "c", At: began.Add(time.Duration(n)), Verdict: "retry"}, "")
	}
	newest := []headers.Attempt{s.earlier[len(s.earlier)-1], {Class: "c", Run: runs + 1}}
	var m headers.Meta
	m.Fail(classify.Result{Class: "c"}, "", began, s.earlier...)
	back, err := headers.Parse(m.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range back.History[len(back.History)-2:] {
		if a.Run != newest[i].Run {
			t.Errorf("the history ends with run %d, want %d", a.Run, newest[i].Run)
		}
	}
	if first := back.History[0].Run; first != runs+2-len(back.History) || !m.FirstFailedAt.Equal(began.Add(1)) {
		t.Errorf("the %d runs of the history begin with %d, and the first failed at %v", len(back.History), first, m.FirstFailedAt)
	}
	long := strings.Repeat("é", 1<<20)
	s.keepEarlier(headers.Attempt{}, long)
	if n := len(s.earlier); n > headers.MaxHistory/20 {
		t.Errorf("%d of %d runs are kept", n, runs)
	}
	last := s.earlier[len(s.earlier)-1].Message
	if len(last) > 2*headers.MaxHistoryMessage || unsafe.StringData(last) == unsafe.StringData(long) {
		t.Errorf("%d bytes of a text of %d are kept, or all", len(last), len(long))
	}
}

// The path of a copy is hot when everything fails.
func TestCopyLane_CostsNothingWithoutHooks(t *testing.T) { // not parallel: it counts allocations
	c := idle(t, Config{}, func() {})
	l := copyLane{held(c, 0, "m")}
	sent := forward.NewCopy(&l.source.feed, 0, kgo.Record{})
	r := &kgo.Record{Topic: "orders.dlq"}
	for _, topic := range []string{"orders.dlq", "orders.retry.5s"} {
		r.Topic = topic
		if n := testing.AllocsPerRun(100, func() { l.Acknowledged(sent, r) }); n != 0 {
			t.Errorf("a copy on %s costs %v allocations for hooks that are not there", topic, n)
		}
	}
}
