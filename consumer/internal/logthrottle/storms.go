package logthrottle

import (
	"sync"
	"time"
)

// Storms turns many events into few lines, whose numbers add up to the number of events. The first
// event of a kind K has a line at once. While more come, a line every [Every] has the number since
// the line before. An interval without an event ends the storm, and has a line if there was more
// than one event. V is an example, of which a line has the latest.
//
// Report writes a line. It is called without a lock of Storms, by the goroutine of Add or a
// timer's. Rest returns the kind as which a kind counts when there are too many. It has to return
// few different kinds, since these are not bounded. Set both before the first Add. Methods are safe
// for concurrent use.
type Storms[K comparable, V any] struct {
	Report func(K, Tally[V])
	Rest   func(K) K

	mu    sync.Mutex
	kinds map[K]*storm[V]
	// The storm that was found last. A storm is mostly of one kind, and comparing it costs a tenth
	// of looking it up.
	recent     *storm[V]
	recentKind K
	timer      *time.Timer
	armed      time.Time // when the timer fires or fired, until tick has ended; zero if it does not
	closed     bool
	reporting  chan struct{} // closed when tick has ended; nil while it does not run
}

// Tally is what a line says of a storm.
type Tally[V any] struct {
	// Events is the number since the line before; 0 in the line that ends a storm.
	Events int
	// Total is the number since the storm began, and Lasted the time from its first event to its
	// last.
	Total  int
	Lasted time.Duration
	// Last is the example of the latest event.
	Last V
}

// First reports whether the line is about the first event of its kind.
func (t *Tally[V]) First() bool { return t.Total == 1 }

// Over reports whether the line ends a storm.
func (t *Tally[V]) Over() bool { return t.Events == 0 }

type storm[V any] struct {
	began, last time.Time
	next        time.Time // when its next line is due
	more        int       // events since its last line
	total       int
	example     V
}

func (s *storm[V]) tally() Tally[V] {
	t := Tally[V]{Events: s.more, Total: s.total, Lasted: max(s.last.Sub(s.began), 0), Last: s.example}
	s.more = 0
	return t
}

// maxKinds bounds the kinds in memory, and with them the lines at a time. Kinds that Rest returns
// come on top.
const maxKinds = 100

// Add counts an event at the present time, and reports whether it had a line. It keeps no reference
// to its arguments.
func (q *Storms[K, V]) Add(now time.Time, kind *K, example *V) bool {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		q.Report(*kind, Tally[V]{Events: 1, Total: 1, Last: *example})
		return true
	}
	if s := q.find(kind); s != nil {
		s.more++
		s.total++
		s.last, s.example = now, *example
		q.mu.Unlock()
		return false
	}
	k := q.kindOf(kind)
	if q.kinds == nil {
		q.kinds = map[K]*storm[V]{}
	}
	s := &storm[V]{began: now, last: now, next: now.Add(Every), more: 1, total: 1, example: *example}
	q.kinds[k] = s
	t := s.tally()
	q.arm(now, s.next)
	q.mu.Unlock()
	q.Report(k, t)
	return true
}

// find returns the storm of a kind, or nil. The caller holds the lock.
func (q *Storms[K, V]) find(kind *K) *storm[V] {
	if q.recent != nil && q.recentKind == *kind {
		return q.recent
	}
	s := q.kinds[*kind]
	if s == nil {
		s = q.kinds[q.kindOf(kind)]
	}
	q.recent, q.recentKind = s, *kind
	return s
}

// kindOf returns the kind as which an event of a new kind counts. The caller holds the lock.
func (q *Storms[K, V]) kindOf(kind *K) K {
	if len(q.kinds) >= maxKinds {
		return q.Rest(*kind)
	}
	return *kind
}

// arm has the timer fire at a time, if it does not fire earlier. The caller holds the lock.
func (q *Storms[K, V]) arm(now, at time.Time) {
	switch {
	case !q.armed.IsZero() && !at.Before(q.armed):
		return
	case q.timer == nil:
		q.timer = time.AfterFunc(at.Sub(now), q.tick)
	default:
		q.timer.Reset(at.Sub(now))
	}
	q.armed = at
}

// tick writes the lines that are due. The timer is armed again when all are written: the lines of a
// slow log must not pile up.
func (q *Storms[K, V]) tick() {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return
	}
	ended := make(chan struct{})
	q.reporting = ended
	due := q.due(time.Now())
	q.mu.Unlock()
	q.write(due)
	q.mu.Lock()
	q.reporting, q.armed = nil, time.Time{}
	if !q.closed {
		for _, s := range q.kinds {
			q.arm(time.Now(), s.next)
		}
	}
	q.mu.Unlock()
	close(ended)
}

// due returns the lines that are due, and ends the storms that are over. The caller holds the lock.
func (q *Storms[K, V]) due(now time.Time) (due []line[K, V]) {
	for k, s := range q.kinds {
		if now.Before(s.next) {
			continue
		}
		ends := s.more == 0
		if !ends || s.total > 1 {
			due = append(due, line[K, V]{k, s.tally()})
		}
		if ends {
			delete(q.kinds, k)
			q.recent = nil
			continue
		}
		s.next = now.Add(Every)
	}
	return due
}

// Close writes lines about events that have no line yet, behind those of the timer. A later event
// has a line at once.
func (q *Storms[K, V]) Close() {
	q.mu.Lock()
	q.closed = true
	if q.timer != nil {
		q.timer.Stop()
	}
	var rest []line[K, V]
	for k, s := range q.kinds {
		if s.more > 0 {
			rest = append(rest, line[K, V]{k, s.tally()})
		}
	}
	q.kinds, q.recent = nil, nil
	reporting := q.reporting
	q.mu.Unlock()
	if reporting != nil {
		<-reporting
	}
	q.write(rest)
}

type line[K comparable, V any] struct {
	of K
	is Tally[V]
}

func (q *Storms[K, V]) write(lines []line[K, V]) {
	for _, l := range lines {
		q.Report(l.of, l.is)
	}
}
