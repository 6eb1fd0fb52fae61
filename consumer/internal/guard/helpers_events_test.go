package guard

import "time"

type kind uint8

const (
	ended kind = iota
	due
	ticked
	restarted
)

// event is something that happens at a time.
type event struct {
	at      time.Duration
	seq     int
	kind    kind
	member  *member
	gate    gate // that of the run, which a restart replaces
	lane    *lane
	pick    pick
	outcome Outcome
}

// add and pop are a heap of events.
func (w *world) add(e event) {
	w.seq++
	e.seq = w.seq
	w.events = append(w.events, e)
	for i := len(w.events) - 1; i > 0; {
		up := (i - 1) / 2
		if !w.events[i].before(&w.events[up]) {
			break
		}
		w.events[i], w.events[up] = w.events[up], w.events[i]
		i = up
	}
}

func (w *world) pop() event {
	e, last := w.events[0], len(w.events)-1
	w.events[0] = w.events[last]
	w.events[last] = event{}
	w.events = w.events[:last]
	for i := 0; ; {
		least := i
		for _, down := range [...]int{2*i + 1, 2*i + 2} {
			if down < last && w.events[down].before(&w.events[least]) {
				least = down
			}
		}
		if least == i {
			return e
		}
		w.events[i], w.events[least] = w.events[least], w.events[i]
		i = least
	}
}

func (e *event) before(f *event) bool { return e.at < f.at || e.at == f.at && e.seq < f.seq }
