package redrive

import "container/heap"

// lineUp is whose letters wait where: those of a group on one partition are passed in the order of their offsets.
type lineUp struct {
	group, topic string
	partition    int32
}

// queue has the letters of a line, the least offset first. Of a letter that has moved on since, the old place stays until it is met.
type queue []queued

type queued struct {
	offset int64
	letter place
}

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].offset < q[j].offset }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }

// Push and Pop are the heap's.
func (q *queue) Push(x any) { *q = append(*q, x.(queued)) }

// Pop is Push's counterpart.
func (q *queue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}

// queues are the lines of a run.
type queues map[lineUp]*queue

func (qs queues) add(fl *flight, letter place) {
	if fl.at.Topic == "" {
		return
	}
	at := lineUp{fl.group, fl.at.Topic, fl.at.Partition}
	q := qs[at]
	if q == nil {
		q = &queue{}
		qs[at] = q
	}
	heap.Push(q, queued{fl.at.Offset, letter})
}

// is reports whether a flight still is where it was lined up.
func (l lineUp) is(fl *flight, offset int64) bool {
	return fl != nil && fl.group == l.group && fl.at.Topic == l.topic && fl.at.Partition == l.partition && fl.at.Offset == offset
}
