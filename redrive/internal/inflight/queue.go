package inflight

import (
	"cmp"
	"slices"

	"github.com/sidingkafka/siding/redrive/internal/letters"
)

// QueueKey names a queue. A group passes its letters on a partition in the order of their offsets.
type QueueKey struct {
	Group, Topic string
	Partition    int32
}

// queuedLetter is a letter with the offset of its copy.
type queuedLetter struct {
	offset, letter int64
	home           int32 // the letter's partition
}

func (q queuedLetter) place() letters.Place { return letters.At(q.home, q.letter) }

// queue holds the letters of one group on one partition, the lowest offset first. A letter with a
// later copy stays in its old queue until the queue reaches it. A queue has no pointers, so that
// the garbage collector need not scan millions of letters.
type queue struct {
	waiting []queuedLetter
	passed  int // number of removed letters at the head of waiting
}

// add adds a letter. Letters come nearly in order, because two transactions may be written at the
// same time.
func (q *queue) add(next queuedLetter) {
	if len(q.waiting) == cap(q.waiting) && q.passed > len(q.waiting)/2 {
		q.waiting, q.passed = append(q.waiting[:0], q.waiting[q.passed:]...), 0
	}
	i := len(q.waiting)
	for i > q.passed && q.waiting[i-1].offset > next.offset {
		i--
	}
	q.waiting = slices.Insert(q.waiting, i, next)
}

func (q *queue) first() (next queuedLetter, ok bool) {
	if q.passed == len(q.waiting) {
		return queuedLetter{}, false
	}
	return q.waiting[q.passed], true
}

// has reports whether a letter is in the queue at an offset.
func (q *queue) has(a queuedLetter) bool {
	i, found := slices.BinarySearchFunc(q.waiting[q.passed:], a.offset, func(b queuedLetter, offset int64) int { return cmp.Compare(b.offset, offset) })
	return found && q.waiting[q.passed+i] == a
}

func (q *queue) pop() { q.passed++ }

// queues are all queues of a run.
type queues map[QueueKey]*queue

func (qs queues) line(at QueueKey) *queue {
	q := qs[at]
	if q == nil {
		q = &queue{}
		qs[at] = q
	}
	return q
}

// is reports whether the last copy of a letter is at an offset of this queue.
func (l QueueKey) is(fl *letterState, offset int64) bool {
	return fl.group == l.Group && fl.at.Topic == l.Topic && fl.at.Partition == l.Partition && fl.at.Offset == offset
}
