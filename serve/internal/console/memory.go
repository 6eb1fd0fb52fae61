package console

import (
	"sync"
	"time"
)

// memory knows which forms were carried out, so that a form that is sent twice is carried out once.
// It is of one server, as the browser's connection is. It is safe for concurrent use.
type memory struct {
	mu sync.Mutex
	of map[string]*deed
}

// deed is what a form did, or is doing.
type deed struct {
	at   time.Time
	once sync.Once
	err  error
}

const (
	// deedTime is how long a form is remembered.
	deedTime = 10 * time.Minute
	// mostDeeds bounds those that are.
	mostDeeds = 10_000
)

// once carries a form out, unless it was carried out before. One that failed may be sent again.
func (m *memory) once(key string, now time.Time, do func() error) error {
	m.mu.Lock()
	if m.of == nil {
		m.of = map[string]*deed{}
	}
	d := m.of[key]
	if d == nil {
		if len(m.of) >= mostDeeds {
			for k, old := range m.of {
				if now.Sub(old.at) > deedTime {
					delete(m.of, k)
				}
			}
		}
		if len(m.of) >= mostDeeds {
			clear(m.of)
		}
		d = &deed{at: now}
		m.of[key] = d
	}
	m.mu.Unlock()
	d.once.Do(func() { d.err = do() })
	if d.err != nil {
		m.mu.Lock()
		if m.of[key] == d {
			delete(m.of, key)
		}
		m.mu.Unlock()
	}
	return d.err
}
