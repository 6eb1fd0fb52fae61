package consumer

import (
	"fmt"
	"sync"

	"github.com/sidingkafka/siding/consumer/internal/guard"
	"github.com/sidingkafka/siding/internal/commitmark"
)

// guards are the guards of a consumer's topics, and what has to be told about them.
type guards struct {
	of map[string]*guard.Topic // by source; nil where the policy has none

	mu     sync.Mutex
	events []guardEvent
	noted  chan struct{} // capacity 1
}

// guardEvent is an event of a topic's guard.
type guardEvent struct {
	topic string
	guard.Event
}

// note queues an event. It may be called under any lock.
func (g *guards) note(e guardEvent) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.events = append(g.events, e)
	select {
	case g.noted <- struct{}{}:
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

// whyOf says for an operator which runs led to a state, and how the last bad one failed.
func whyOf(is *guard.Status) string {
	text := fmt.Sprintf("%.0f %% of %d runs failed", 100*share64(is.Bad, is.Runs), is.Runs)
	if is.State != guard.Closed {
		text += ", the last with class " + is.Last.Class
	}
	return text
}

// markOf is a transition as a commit says it.
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

func share64(part, of int64) float64 { return float64(part) / float64(max(of, 1)) }

// topicHealthOf returns the health of a topic in a state, without the records that wait; ok is
// false if it is closed.
func topicHealthOf(topic string, is *guard.Status) (h TopicHealth, ok bool) {
	h = TopicHealth{
		Topic: topic, Since: is.Since, Share: share64(is.Bad, is.Runs), Runs: is.Runs,
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
