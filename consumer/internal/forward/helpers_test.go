package forward

import (
	"context"
	"maps"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/clock"
)

// handedOver is what kgo has, and whether it was sent alone.
type handedOver struct {
	mu sync.Mutex
	to map[*Copy]bool
}

func (h *handedOver) all() map[*Copy]bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.to)
}

// take takes a copy back.
func (h *handedOver) take(c *Copy) (alone bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	alone = h.to[c]
	delete(h.to, c)
	return alone
}

// handsOver sees what a client is given.
type handsOver struct {
	*handedOver
	alone bool
}

func (h handsOver) OnProduceRecordBuffered(r *kgo.Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := copyOf(r); c != nil {
		h.to[c] = h.alone
	}
}

// silent returns how to make a client of a broker that never answers.
func (h *handedOver) silent(alone bool) func() (*kgo.Client, error) {
	return func() (*kgo.Client, error) {
		return kgo.NewClient(kgo.SeedBrokers("localhost:1"), kgo.RecordPartitioner(kgo.ManualPartitioner()),
			kgo.WithHooks(handsOver{h, alone}),
			kgo.Dialer(func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}))
	}
}

// testLane is a lane, an origin and an observer that keep what they are called with.
type testLane struct {
	sync.Mutex
	finished map[int64]bool
	halted   int
	outcomes []Outcome
	refusals []Refusal
	note     *kgo.Record
	changed  func() // may be nil
}

func (l *testLane) Changed() {
	if l.changed != nil {
		l.changed()
	}
}

func (l *testLane) Halt(*Copy) { l.halted++ }
func (l *testLane) DiscardNotes(c *Copy) []*Copy {
	if l.note == nil {
		return nil
	}
	return []*Copy{NewNote(c.From(), c.Offset(), *l.note, false)}
}
func (l *testLane) Acknowledged(*Copy, *kgo.Record) {}

func (l *testLane) Finish(offset int64) { l.finished[offset] = true }

func (l *testLane) Refused(_ *Copy, r Refusal) {
	l.Lock()
	defer l.Unlock()
	l.refusals = append(l.refusals, r)
}

func (l *testLane) Ended(_ *Copy, o Outcome, _ error) {
	l.Lock()
	defer l.Unlock()
	l.outcomes = append(l.outcomes, o)
}

// finishedNow returns the offsets that are finished.
func (l *testLane) finishedNow() map[int64]bool {
	l.Lock()
	defer l.Unlock()
	return maps.Clone(l.finished)
}

// testCopies returns the copies of a lane that go by the clients that batched and alone make.
func testCopies(t *testing.T, how Oversize, batched, alone func() (*kgo.Client, error)) (*Copies, *testLane) {
	t.Helper()
	clients := NewClients(t.Context(), &clock.Clock{Base: time.Now()}, batched, alone, alone)
	t.Cleanup(clients.Close)
	l := &testLane{finished: map[int64]bool{}}
	s := &Copies{}
	s.Init(Config{Lane: l, Observer: l, Clients: clients, Context: t.Context(), DLQ: "orders.dlq", OnOversize: how})
	t.Cleanup(func() {
		l.Lock()
		defer l.Unlock()
		s.Close()
	})
	return s, l
}
