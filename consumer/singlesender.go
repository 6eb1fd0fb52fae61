package consumer

import (
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/fifo"

	forward_ "github.com/sidingkafka/siding/consumer/internal/forward"
)

// singleSender sends copies one at a time to each partition: what is refused then is that copy, and not a batch that it was in. The
// order is kept here and not by the lane, since a lane that was given up may have left a copy under way when the partition
// comes back.
//
// It has a client of its own, made when it is first needed: the producer's limit, which keeps its batches small, counts bytes
// before compression, and would refuse what the broker takes.
// See DESIGN.md, "Copies that are too large".
type singleSender struct {
	forward_.Producers

	mu     sync.Mutex
	queues map[topicPartition]*fifo.Queue[*forward] // behind the copy that is under way
}

// send sends the copy when its turn comes, if its lane still wants it then. It does not wait.
func (s *singleSender) send(fw *forward) {
	at := fw.at()
	s.mu.Lock()
	line, busy := s.queues[at]
	if busy {
		for line.Len() > 0 && (*line.Head()).feed.lane.isGone() { // copies of a lane before this one, behind one that hangs
			line.Pop()
		}
		line.Push(fw)
		s.mu.Unlock()
		return
	}
	if s.queues == nil {
		s.queues = map[topicPartition]*fifo.Queue[*forward]{}
	}
	s.queues[at] = &fifo.Queue[*forward]{}
	s.mu.Unlock()
	s.start(fw)
}

// start hands the copy to kgo, or the first behind it whose lane still wants it.
func (s *singleSender) start(fw *forward) {
	for at := fw.at(); fw != nil; fw = s.next(at) {
		if !fw.feed.lane.takesTurn(fw) {
			continue
		}
		if err := fw.via.Produce(fw, &s.Producers, fw.freshRecord(), s.promise); err != nil {
			fw.feed.lane.arrived(fw, fmt.Errorf("a client for large copies: %w", err))
			continue
		}
		return
	}
}

// promise is kgo's promise of every copy that was sent alone.
func (s *singleSender) promise(r *kgo.Record, err error) {
	fw, _ := r.Context.Value(forwardKey{}).(*forward)
	if behind := s.next(fw.at()); behind != nil {
		s.start(behind)
	}
	fw.feed.lane.promise(r, err)
}

// next takes the first of a line; without one the line ends.
func (s *singleSender) next(at topicPartition) *forward {
	s.mu.Lock()
	defer s.mu.Unlock()
	if line := s.queues[at]; line != nil && line.Len() > 0 {
		return line.Pop()
	}
	delete(s.queues, at)
	return nil
}
