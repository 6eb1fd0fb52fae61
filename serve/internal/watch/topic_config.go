package watch

import (
	"log/slog"
	"time"
)

// configure takes over what the brokers' configuration means, and logs if the ledger forgets.
func (t *Topic) configure(c brokerConfig, log *slog.Logger) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.unanswered {
		c.retention = t.retention
	}
	if c.partly {
		c.forgets = t.forgets
	}
	if c.forgets != nil && t.forgets == nil {
		log.Warn("siding: a ledger forgets", "topic", t.DeadLetterTopic.Topic, "error", c.forgets)
	}
	t.brokerConfig = c
}

// Forgetful returns why the ledger forgets; nil if it does not, as far as is known.
func (t *Topic) Forgetful() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.forgets
}

// Keeps returns how long Kafka keeps the topic's letters; zero if for ever, or if it is not known.
func (t *Topic) Keeps() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.retention
}
