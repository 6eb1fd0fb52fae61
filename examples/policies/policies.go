package main

import (
	"time"

	"github.com/sidingkafka/siding/consumer"
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
		// Money. Two minutes outlast a failover. What they do not outlast, a person looks at.
		payments: {Tiers: []time.Duration{2 * time.Second, 10 * time.Second, time.Minute}, MaxAttempts: 5},

		// A customer waits for the answer, so a person should look soon.
		orders: {Tiers: []time.Duration{5 * time.Second, 5 * time.Minute}, MaxAttempts: 3},

		// Late is fine. When the gateway is back, a rule of the server sends the letters.
		mails: {
			Tiers:       []time.Duration{30 * time.Second},
			MaxAttempts: 3,
			// The longest wait that the mail gateway may ask for.
			MaxRetryAfter: 2 * time.Hour,
		},

		// No user waits: a letter can be redriven next week.
		analytics: {Tiers: []time.Duration{}, MaxAttempts: 1}, // empty, not nil: no retry topics

		// No entry may be missing. An entry whose letter would lack its value halts its lane.
		audit: {
			Tiers:       []time.Duration{time.Second, 10 * time.Second, time.Minute, 10 * time.Minute},
			MaxAttempts: 10,
			OnOversize:  consumer.Stop,
		},

		// A single record does not matter: there are neither retries nor letters.
		clicks: {
			Tiers:       []time.Duration{},
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
