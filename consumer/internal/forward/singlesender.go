package forward

import (
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/fifo"
)

// singleSender sends copies one at a time to each partition: a refusal is then about that copy
// alone, not about its batch. The lane cannot keep this order: when a partition comes back to this
// process, the copy of its former lane may still be in flight.
//
// It has clients of its own. The ordinary client limits the bytes of a batch before compression,
// and so would refuse copies that the broker accepts.
// See DESIGN.md, "Copies that are too large".
type singleSender struct {
	mu     sync.Mutex
	queues map[partition]*fifo.Queue[*Copy] // those after the copy in flight
}

// partition is a partition that copies are written to.
type partition struct {
	topic string
	n     int32
}

// send sends a waiting copy when its turn comes, if its lane still wants it then. It does not
// block.
func (s *singleSender) send(c *Copy) {
	at := c.at()
	s.mu.Lock()
	line, busy := s.queues[at]
	if busy {
		for line.Len() > 0 && (*line.Head()).of.Context.Err() != nil {
			line.Pop() // of a former lane, after a copy that hangs
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

// start hands the copy to kgo, or the first after it whose lane still wants it.
func (s *singleSender) start(c *Copy) {
	for at := c.at(); c != nil; c = s.next(at) {
		if !c.of.takesTurn(c) {
			continue
		}
		if err := c.via.produce(copyContext{c}, c.producers(), c.nextRecord(), s.promise); err != nil {
			c.of.returned(c, fmt.Errorf("make the client for large copies: %w", err))
			continue
		}
		return
	}
}

// promise is the callback that kgo calls for every copy that was sent alone.
func (s *singleSender) promise(r *kgo.Record, err error) {
	c := copyOf(r)
	if behind := s.next(c.at()); behind != nil {
		s.start(behind)
	}
	c.of.promise(r, err)
}

// next takes the first copy of a line. It deletes an empty line.
func (s *singleSender) next(at partition) *Copy {
	s.mu.Lock()
	defer s.mu.Unlock()
	if line := s.queues[at]; line != nil && line.Len() > 0 {
		return line.Pop()
	}
	delete(s.queues, at)
	return nil
}
