package consumer

import (
	"context"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
)

// Mux sends each record to the handler of its route. What no route is for fails terminally with
// class unroutable, and is dead-lettered with that reason; see Otherwise. Routes are added before
// the consumer runs; afterwards a Mux is safe for concurrent use.
type Mux struct {
	route     func(*kgo.Record) string
	mu        sync.RWMutex
	handlers  map[string]Handler
	otherwise Handler
}

const classUnroutable = "unroutable"

// NewMux routes by what route returns for a record: see ByTopic and ByHeader.
func NewMux(route func(*kgo.Record) string) *Mux {
	return &Mux{route: route, handlers: map[string]Handler{}}
}

// ByTopic routes by source topic.
func ByTopic(r *kgo.Record) string { return r.Topic }

// ByHeader routes by the value of a header, the message's type say; the last one counts where there
// are several, and a record without it has the empty route.
func ByHeader(key string) func(*kgo.Record) string {
	return func(r *kgo.Record) string {
		for i := len(r.Headers) - 1; i >= 0; i-- {
			if r.Headers[i].Key == key {
				return string(r.Headers[i].Value)
			}
		}
		return ""
	}
}

// Handle sets the handler of a route, in place of the one it had.
func (m *Mux) Handle(route string, h Handler) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.handlers[route] = h
}

// Otherwise sets the handler for what no route is for. [DiscardUnroutable] drops it, counted and
// logged.
func (m *Mux) Otherwise(h Handler) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.otherwise = h
}

// DiscardUnroutable is a handler for Mux.Otherwise.
func DiscardUnroutable(_ context.Context, r *kgo.Record) error {
	return classify.As(classify.Discard(fmt.Errorf("no handler for a record of topic %s", r.Topic)), classUnroutable)
}

// Serve is the Mux's [Handler].
func (m *Mux) Serve(ctx context.Context, r *kgo.Record) error {
	route := m.route(r)
	m.mu.RLock()
	h := m.handlers[route]
	if h == nil {
		h = m.otherwise
	}
	m.mu.RUnlock()
	if h == nil {
		return classify.As(classify.Terminal(fmt.Errorf("no handler for route %q", route)), classUnroutable)
	}
	return h(ctx, r)
}
