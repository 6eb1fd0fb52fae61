package tier

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/logthrottle"
	"github.com/sidingkafka/siding/consumer/internal/offsets"
	"github.com/sidingkafka/siding/headers"
)

// testLane is a lane without workers: what is due stays in ready.
type testLane struct {
	sync.Mutex
	ctx      context.Context
	closing  bool
	ready    []*Item
	reopened int
	outOfLog atomic.Int64
}

func (l *testLane) Closing() bool            { return l.closing }
func (l *testLane) Enqueue(it *Item)         { l.ready = append(l.ready, it) }
func (l *testLane) Ready() int               { return len(l.ready) }
func (l *testLane) Wake()                    {}
func (l *testLane) Reopen()                  { l.reopened++ }
func (l *testLane) OutOfLog()                { l.outOfLog.Add(1) }
func (l *testLane) Context() context.Context { return l.ctx }

// count is how many records are ready.
func (l *testLane) count() int {
	l.Lock()
	defer l.Unlock()
	return len(l.ready)
}

// work has a worker take and finish the first ready record, and returns what do makes of it.
func (l *testLane) work(t *Tier, do func(*kgo.Record)) {
	l.Lock()
	it := l.ready[0]
	l.ready = l.ready[1:]
	t.Take(it)
	l.Unlock()
	do(t.Unpack(it))
	l.Lock()
	t.Done(it)
	l.Unlock()
}

// testEnv is a process with a budget of 1 MiB, in which every topic keeps records for seven days.
func testEnv() *Env {
	return &Env{
		Budget:    NewBudget(1<<20, func([]Lane) {}),
		MaxDue:    1000,
		Retention: func(string, time.Duration) time.Duration { return 7 * 24 * time.Hour },
		Go:        func(f func()) { go f() },
		Throttle:  new(logthrottle.Throttle),
	}
}

// newTier makes the tier of 5 s of orders/3.
func newTier(t testing.TB, env *Env) (*Tier, *testLane) {
	l, tracker := &testLane{ctx: t.Context()}, offsets.New(0, -1)
	tier := New(env, l, Config{
		Topic: "orders.retry.5s", Partition: 3, Delay: 5 * time.Second, Wait: 5 * time.Second,
		Log: slog.New(slog.DiscardHandler),
	}, &tracker)
	t.Cleanup(func() {
		l.Lock()
		defer l.Unlock()
		l.closing = true
		tier.Drop()
	})
	return tier, l
}

// waitingFor is a record of the tier that is due at a time.
func waitingFor(offset int64, written, due time.Time) *kgo.Record {
	m := headers.Meta{
		Original: headers.Position{Topic: "orders", Partition: 3}, Group: "billing", Attempts: 1, Class: "busy", Message: "busy",
		FirstFailedAt: written, FailedAt: written, NotBefore: due, Hops: 1,
	}
	return &kgo.Record{Topic: "orders.retry.5s", Partition: 3, Offset: offset, Timestamp: written, Headers: m.Append(nil)}
}

// bomb is a record that is small on the wire and large in memory.
func bomb(offset int64, headers int) *kgo.Record {
	r := &kgo.Record{Key: []byte("key"), Offset: offset}
	for range headers {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: "h", Value: []byte("v")})
	}
	return r
}
