package operate

import (
	"sync"
	"time"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/selection"
)

// Glance is what a list shows of a letter beside what an index knows.
type Glance struct {
	// Message is what the last failure said; Cut reports that it goes on.
	Message  string
	Cut      bool
	Attempts int
	Host     string
	// Key is the beginning of the record's key; the zero value for those who may not read.
	Key api.Bytes
}

// glanceAt identifies a letter: a topic that was recreated has others at the same places.
type glanceAt struct {
	topic   string
	place   selection.Place
	written int64 // Unix milliseconds
}

// mostGlances bounds what is kept, to about 2 MiB.
const mostGlances = 4096

// glances keeps what lists showed of letters, which never changes. It is safe for concurrent use.
type glances struct {
	mu    sync.Mutex
	of    map[glanceAt]Glance
	until map[string]time.Time // until then letters of a topic are not read, after that failed
}

func newGlances() *glances {
	return &glances{of: map[glanceAt]Glance{}, until: map[string]time.Time{}}
}

func (g *glances) get(at glanceAt) (Glance, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	is, ok := g.of[at]
	return is, ok
}

// put keeps a glance. If there are many, some others are forgotten.
func (g *glances) put(at glanceAt, is Glance) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.of) >= mostGlances {
		for other := range g.of { // in random order
			if delete(g.of, other); len(g.of) < mostGlances*3/4 {
				break
			}
		}
	}
	g.of[at] = is
}

// rest keeps letters of a topic from being read until a time.
func (g *glances) rest(topic string, until time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.until[topic] = until
}

func (g *glances) rests(topic string, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if until, ok := g.until[topic]; !ok || now.Before(until) {
		return ok
	}
	delete(g.until, topic)
	return false
}
