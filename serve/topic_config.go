package serve

import "log/slog"

// configure takes over what the brokers' configuration means, and logs if the ledger forgets.
func (t *topic) configure(c brokerConfig, log *slog.Logger) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.untold {
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

// forgetful returns why the ledger forgets; nil if it does not, as far as is known.
func (t *topic) forgetful() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.forgets
}
