package forward

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// sendsAlone sends copies to a topic that are refused in a batch, and are to be sent alone.
func sendsAlone(t *testing.T, s *Copies, l *testLane, topic string, offsets ...int64) (all []*Copy) {
	t.Helper()
	for _, at := range offsets {
		c := NewCopy(l, at, kgo.Record{Topic: topic, Value: []byte("value")})
		s.Send(c)
		s.returned(c, kerr.MessageTooLarge)
		all = append(all, c)
	}
	return all
}

func TestSingleSender_SendsOneAtATimeToAPartition(t *testing.T) {
	t.Parallel()
	kgos := &handedOver{to: map[*Copy]bool{}}
	s, l := testCopies(t, Omit, kgos.silent(false), kgos.silent(true))
	letters := sendsAlone(t, s, l, "orders.dlq", 0, 1)
	parked := sendsAlone(t, s, l, "orders.retry.5s", 2)
	alone := func(c *Copy) bool { return kgos.all()[c] }
	if !alone(letters[0]) || alone(letters[1]) || !alone(parked[0]) {
		t.Fatalf("sent alone: %v and %v to one topic, %v to another; want one of the first two, and the third",
			alone(letters[0]), alone(letters[1]), alone(parked[0]))
	}
	s.Clients.single.promise(&kgo.Record{Topic: "orders.dlq", Context: copyContext{letters[0]}}, nil)
	if !alone(letters[1]) || !l.finishedNow()[0] {
		t.Errorf("behind a copy that is safe (finished: %v), the next is sent: %v", l.finishedNow()[0], alone(letters[1]))
	}
}

// A lane that was revoked left copies in line behind one that hangs. The partition comes back: its
// copies go in their turn, and no copy of the lane before is sent.
func TestSingleSender_SkipsWhatALaneGaveUp(t *testing.T) {
	t.Parallel()
	kgos := &handedOver{to: map[*Copy]bool{}}
	before, l := testCopies(t, Omit, kgos.silent(false), kgos.silent(true))
	ctx, abandon := context.WithCancel(t.Context())
	before.Context = ctx
	old := sendsAlone(t, before, l, "orders.dlq", 0, 1, 2)
	l.Lock()
	before.Close()
	l.Unlock()
	abandon()
	again := &testLane{finished: map[int64]bool{}}
	after := &Copies{}
	cfg := before.Config
	cfg.Lane, cfg.Observer, cfg.Context = again, again, t.Context()
	after.Init(cfg)
	fresh := sendsAlone(t, after, again, "orders.dlq", 0)
	if n := after.Clients.single.queues[fresh[0].at()].Len(); n != 1 {
		t.Errorf("%d copies are in line, want the one that its lane wants", n)
	}
	after.Clients.single.promise(&kgo.Record{Topic: "orders.dlq", Context: copyContext{old[0]}}, kgo.ErrClientClosed)
	if to := kgos.all(); !to[fresh[0]] || to[old[1]] || to[old[2]] {
		t.Errorf("sent alone: the fresh copy %v, those given up %v and %v", to[fresh[0]], to[old[1]], to[old[2]])
	}
}
