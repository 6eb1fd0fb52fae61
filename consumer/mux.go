package consumer

import (
	"context"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
)

// Mux passes each record to the handler of its route. A record without a handler fails terminally
// with class unroutable, and is dead-lettered with that reason, unless [Mux.Otherwise] is set. A
// Mux is safe for concurrent use.
type Mux struct {
	route     func(*kgo.Record) string
	mu        sync.RWMutex
	handlers  map[string]Handler
	otherwise Handler
}

// NewMux makes a Mux that routes by the result of route: see [ByTopic] and [ByHeader]. It panics if
// route is nil.
func NewMux(route func(*kgo.Record) string) *Mux {
	if route == nil {
		panic("consumer: NewMux: route is nil: each record would be dead-lettered")
	}
	return &Mux{route: route, handlers: map[string]Handler{}}
}

// ByTopic routes by source topic.
func ByTopic(r *kgo.Record) string { return r.Topic }

// ByHeader routes by the value of a header, for example the message's type. If a record has several
// such headers, the last one counts. A record without one has the empty route.
func ByHeader(key string) func(*kgo.Record) string {
	return func(r *kgo.Record) string { return recordCarrier(r.Headers).Get(key) }
}

// Handle sets the handler of a route, and replaces an earlier one. A nil handler removes it.
func (m *Mux) Handle(route string, h Handler) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.handlers[route] = h
}

// Otherwise sets the handler for records whose route has none. With [DiscardUnroutable], siding
// discards them, and counts and logs that.
func (m *Mux) Otherwise(h Handler) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.otherwise = h
}

// DiscardUnroutable is a handler for [Mux.Otherwise]. It discards each record.
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
