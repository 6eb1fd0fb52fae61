package dlq

import (
	"cmp"
	binheap "container/heap"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// oldestLetters keeps the oldest letters of those that it gets, as a heap with the newest of them
// on top.
type oldestLetters struct {
	most  int64
	seen  int64
	marks []mark24
}

// mark24 is the mark of a letter in 24 bytes.
type mark24 struct {
	at        int64 // Unix milliseconds
	offset    int64
	partition int32
}

func (o *oldestLetters) add(r *kgo.Record) {
	o.seen++
	m := mark24{r.Timestamp.UnixMilli(), r.Offset, r.Partition}
	switch {
	case int64(len(o.marks)) < o.most:
		binheap.Push(o, m)
	case m.compare(o.marks[0]) < 0:
		o.marks[0] = m
		binheap.Fix(o, 0)
	}
}

// until returns the mark behind the letters that are beyond a number of letters.
func (o *oldestLetters) until(count int64) mark {
	beyond := max(o.seen-count, 0)
	for int64(len(o.marks)) > beyond {
		binheap.Pop(o)
	}
	if len(o.marks) == 0 {
		return mark{}
	}
	m := o.marks[0]
	return mark{time.UnixMilli(m.at), place{m.partition, m.offset + 1}}
}

func (m mark24) compare(with mark24) int {
	return cmp.Or(cmp.Compare(m.at, with.at), cmp.Compare(m.partition, with.partition), cmp.Compare(m.offset, with.offset))
}

// Len, Less, Swap, Push and Pop implement [binheap.Interface].
func (o *oldestLetters) Len() int           { return len(o.marks) }
func (o *oldestLetters) Less(i, j int) bool { return o.marks[i].compare(o.marks[j]) > 0 }
func (o *oldestLetters) Swap(i, j int)      { o.marks[i], o.marks[j] = o.marks[j], o.marks[i] }
func (o *oldestLetters) Push(m any)         { o.marks = append(o.marks, m.(mark24)) }
func (o *oldestLetters) Pop() any {
	m := o.marks[len(o.marks)-1]
	o.marks = o.marks[:len(o.marks)-1]
	return m
}
