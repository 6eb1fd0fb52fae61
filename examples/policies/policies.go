package main

import (
	"time"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/retrytopics"
)

// The topics. A team chooses each schedule by the cost of a record that waits.
const (
	orders   = "orders"   // a customer waits for the answer
	payments = "payments" // money: survive a long outage, and skip no record by itself
	mails    = "mails"    // late is fine; the gateway says when to try again
	clicks   = "clicks"   // single records do not matter
)

// configure returns the consumer's configuration with all delays divided by a factor. A service has
// no such factor.
func configure(divide int) consumer.Config {
	return consumer.Config{
		Group:  "shop",
		Topics: []string{orders, payments, mails, clicks},

		// For each topic without a policy of its own (here orders): 10 s, 1 m, 5 m, then the
		// dead-letter topic.
		Policy: consumer.Policy{Tiers: divided(retrytopics.Aggressive, divide), Jitter: -1},

		Policies: map[string]consumer.Policy{
			payments: {
				// A schedule of the team's own: a retry after 10 minutes, then three more, 2 hours
				// apart.
				Tiers:       divided([]time.Duration{10 * time.Minute, 2 * time.Hour}, divide),
				MaxAttempts: 5,
				OnTerminal:  consumer.Stop, // the partition waits until a person decides
				Jitter:      -1,            // default 0.1; here the output is to be stable
			},
			mails: {
				Tiers: divided(retrytopics.Standard, divide),
				// The longest wait that the gateway may ask for.
				MaxRetryAfter: 2 * time.Hour / time.Duration(divide),
				OnExhausted:   consumer.Discard, // yesterday's mail has no value
				Jitter:        -1,
			},
			clicks: {
				Tiers:       []time.Duration{}, // empty, not nil: one delivery
				OnExhausted: consumer.Discard,
				OnTerminal:  consumer.Discard,
			},
		},
	}
}

func divided(delays []time.Duration, by int) []time.Duration {
	shorter := make([]time.Duration, len(delays))
	for i, d := range delays {
		shorter[i] = d / time.Duration(by)
	}
	return shorter
}
