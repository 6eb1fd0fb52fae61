package forward

import (
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/fifo"
)

// singleSender sends copies one at a time to each partition: what is refused then is that copy, and
// not a batch that it was in. The order is kept here and not by the lane, since a lane that was
// revoked may have left a copy in flight when the partition comes back.
//
// It has a client of its own: the ordinary client's limit, which keeps its batches small, counts
// bytes before compression, and would refuse what the broker takes.
// See DESIGN.md, "Copies that are too large".
type singleSender struct {
	producers producers

	mu     sync.Mutex
	queues map[partition]*fifo.Queue[*Copy] // behind the copy that is in flight
}

// partition is where a copy goes.
type partition struct {
	topic string
	n     int32
}

// send sends a copy that waits when its turn comes, if its lane still wants it then. It does not
// wait.
func (s *singleSender) send(c *Copy) {
	at := c.at()
	s.mu.Lock()
	line, busy := s.queues[at]
	if busy {
		for line.Len() > 0 && (*line.Head()).of.Context.Err() != nil {
			line.Pop() // of a lane before this one, behind a copy that hangs
		}
		line.Push(c)
		s.mu.Unlock()
		return
	}
	if s.queues == nil {
		s.queues = map[partition]*fifo.Queue[*Copy]{}
	}
	s.queues[at] = &fifo.Queue[*Copy]{}
	s.mu.Unlock()
	s.start(c)
}

// start hands the copy to kgo, or the first behind it whose lane still wants it.
func (s *singleSender) start(c *Copy) {
	for at := c.at(); c != nil; c = s.next(at) {
		if !c.of.takesTurn(c) {
			continue
		}
		if err := c.via.produce(copyContext{c}, &s.producers, c.nextRecord(), s.promise); err != nil {
			c.of.arrived(c, fmt.Errorf("a client for large copies: %w", err))
			continue
		}
		return
	}
}

// promise is kgo's promise of every copy that was sent alone.
func (s *singleSender) promise(r *kgo.Record, err error) {
	c := copyOf(r)
	if behind := s.next(c.at()); behind != nil {
		s.start(behind)
	}
	c.of.promise(r, err)
}

// next takes the first of a line; without one the line ends.
func (s *singleSender) next(at partition) *Copy {
	s.mu.Lock()
	defer s.mu.Unlock()
	if line := s.queues[at]; line != nil && line.Len() > 0 {
		return line.Pop()
	}
	delete(s.queues, at)
	return nil
}
