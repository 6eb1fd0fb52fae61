package consumer

import (
	"log/slog"
	"sync"

	"github.com/sidingkafka/siding/consumer/internal/guard"
	"github.com/sidingkafka/siding/internal/commitmark"
)

// guards are the guards of a consumer's topics, and their events that are not yet logged.
type guards struct {
	of map[string]*guard.Topic // by source; nil where the policy has none

	mu     sync.Mutex
	events []guardEvent
	queued chan struct{} // capacity 1
}

// guardEvent is an event of a topic's guard.
type guardEvent struct {
	topic string
	guard.Event
}

// queue adds an event. It may be called under any lock.
func (g *guards) queue(e guardEvent) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.events = append(g.events, e)
	select {
	case g.queued <- struct{}{}:
	default:
	}
}

func (g *guards) take() []guardEvent {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.events
	g.events = nil
	return all
}

// markOf is a status as a commit says it; none says nothing.
func markOf(is *guard.Status) (m commitmark.Guard) {
	if is == nil {
		return m
	}
	m = commitmark.Guard{State: commitmark.Strained, Since: is.Since, Class: is.Last.Class}
	if is.State == guard.Held {
		m.State = commitmark.Held
	}
	return m
}

func (e *guardEvent) log(to *slog.Logger) {
	lasted := []any{"topic", e.topic, "lasted", e.At.Sub(e.Status.Began), "probes", e.Status.Probes}
	why := []any{"topic", e.topic, "why", e.Status.Why(), "class", e.Status.Last.Class, "error", e.Status.Last.Message}
	switch {
	case e.To == guard.Closed:
		to.Info("siding: a topic is strained no more; failures are attempts again", lasted...)
	case e.To == guard.Held:
		to.Warn("siding: a topic is held; its records wait where they are, but for probes", why...)
	case e.From == guard.Held:
		to.Info("siding: a topic is held no more; its records run", lasted...)
	default:
		to.Warn("siding: a topic is strained; failures are no attempts, and retries wait for the retry budget", why...)
	}
}

// topicHealthOf returns the health of a topic in a state, without the records that wait; ok is
// false if it is closed.
func topicHealthOf(topic string, is *guard.Status) (h TopicHealth, ok bool) {
	h = TopicHealth{
		Topic: topic, Since: is.Since, Share: is.Share(), Runs: is.Runs,
		Class: is.Last.Class, LastError: is.Last.Message, Probes: is.Probes, NextProbe: is.NextProbe,
	}
	switch is.State {
	case guard.Held:
		h.State, h.Do = StateHeld, "repair what the class names; the records run by themselves within half a minute, and no restart helps. "+
			"If they fail for good, have the handler call the failure terminal"
	case guard.Strained:
		h.State, h.Do = StateStrained, "repair what the class names; no record is dead-lettered for it for Breaker.MaxOutage since its first failure"
	case guard.Closed:
		return h, false
	}
	return h, true
}
