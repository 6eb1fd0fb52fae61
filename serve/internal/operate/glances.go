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

// mostGlances bounds each generation of what is kept: together about 4 MiB.
const mostGlances = 4096

// glances keeps what lists showed of letters, which never changes. It is safe for concurrent use.
type glances struct {
	mu sync.Mutex
	// of has what was asked for since there was no more room, and before what was until then: what
	// nobody asked for meanwhile is forgotten.
	of, before map[glanceAt]Glance
	until      map[string]time.Time // until then letters of a topic are not read, after that failed
}

func newGlances() *glances {
	return &glances{of: map[glanceAt]Glance{}, until: map[string]time.Time{}}
}

func (g *glances) get(at glanceAt) (Glance, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	is, ok := g.of[at]
	if !ok {
		if is, ok = g.before[at]; ok {
			g.keep(at, is)
		}
	}
	return is, ok
}

func (g *glances) put(at glanceAt, is Glance) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.keep(at, is)
}

// keep keeps a glance. The caller holds the lock.
func (g *glances) keep(at glanceAt, is Glance) {
	if len(g.of) >= mostGlances {
		g.of, g.before = map[glanceAt]Glance{}, g.of
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
