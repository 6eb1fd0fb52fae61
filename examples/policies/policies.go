package main

import (
	"time"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/retrytopics"
)

// The topics, by what a lost or late record costs.
const (
	payments  = "payments"
	orders    = "orders"
	mails     = "mails"
	analytics = "analytics"
	audit     = "audit"
	clicks    = "clicks"
)

// policies are the table in docs/policies.md, as code. What is not set has its default: a dead
// letter after the last attempt, and at once if the error is terminal.
func policies() map[string]consumer.Policy {
	return map[string]consumer.Policy{
		// Money. The schedule outlasts a provider's bad day; what it does not outlast is kept for a
		// person.
		payments: {Tiers: retrytopics.Cautious},

		// A customer waits for the answer, so a person should look soon.
		orders: {Tiers: retrytopics.Aggressive},

		// Late is fine, and yesterday's mail has no value.
		mails: {
			Tiers: retrytopics.Standard,
			// The longest wait that the mail gateway may ask for.
			MaxRetryAfter: 2 * time.Hour,
			OnExhausted:   consumer.Discard,
			NoteDiscards:  true, // redrive list --discarded shows which mails were dropped
		},

		// Nobody waits. Few retries cost little, and a letter can be redriven next week.
		analytics: {Tiers: retrytopics.Patient},

		// No entry may be missing. The lane halts until a person has decided.
		audit: {
			Tiers:       retrytopics.Cautious,
			OnExhausted: consumer.Stop,
			OnTerminal:  consumer.Stop,
			OnOversize:  consumer.Stop,
		},

		// A single record does not matter: retries are off.
		clicks: {
			Tiers:       []time.Duration{}, // empty, not nil: no retry topics
			OnExhausted: consumer.Discard,
			OnTerminal:  consumer.Discard,
		},
	}
}

// configure returns the consumer's configuration with all delays divided by a factor. A service has
// no such factor, and keeps the default jitter.
func configure(divide int) consumer.Config {
	cfg := consumer.Config{
		Group:    "shop",
		Topics:   []string{payments, orders, mails, analytics, audit, clicks},
		Policies: policies(),
	}
	for topic, policy := range cfg.Policies {
		policy.Tiers = divided(policy.Tiers, divide)
		policy.MaxRetryAfter /= time.Duration(divide)
		policy.Jitter = -1 // the output is to be stable
		cfg.Policies[topic] = policy
	}
	return cfg
}

func divided(delays []time.Duration, by int) []time.Duration {
	shorter := make([]time.Duration, len(delays))
	for i, d := range delays {
		shorter[i] = d / time.Duration(by)
	}
	return shorter
}
