package watch

import (
	"sync"
	"time"
)

// observations are what other processes wrote, and when this server first read it. They are safe
// for concurrent use.
type observations struct {
	mu sync.Mutex
	of map[string]observation
}

type observation struct {
	what string
	at   time.Time
}

// ObservedAt returns when something happened that a ledger has, by the clock of this server: the
// writer's clock may be wrong. What is new since the server looked last has happened just now. What
// the server finds at its first look happened when it is recorded, and not in the future.
func (o *observations) ObservedAt(about, what string, now, recorded time.Time) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	was, looked := o.of[about]
	if looked && was.what == what {
		return was.at
	}
	if o.of == nil {
		o.of = map[string]observation{}
	}
	at := now
	if !looked && recorded.Before(now) {
		at = recorded
	}
	o.of[about] = observation{what, at}
	return at
}

// last returns when the last of what was observed about something came; false for none.
func (o *observations) last(about string) (at time.Time, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	is, known := o.of[about]
	return is.at, known
}

func (o *observations) forget(about string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.of, about)
}
