package main

import (
	"time"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/retrytopics"
)

// The topics. A team names each schedule by what is lost when a record waits.
const (
	orders   = "orders"   // somebody waits for the answer
	payments = "payments" // money: outlast a provider's bad day, and never skip one that nobody understands
	mails    = "mails"    // late is fine; the gateway says when to come back
	clicks   = "clicks"   // there are enough of them
)

// configure is the consumer's configuration with all delays divided by a factor. A service has no such factor.
func configure(divide int) consumer.Config {
	return consumer.Config{
		Group:  "shop",
		Topics: []string{orders, payments, mails, clicks},

		// For every topic without a policy of its own, which is orders: 10 s, 1 m, 5 m, then the dead-letter topic.
		Policy: consumer.Policy{Tiers: divided(retrytopics.Aggressive, divide), Jitter: -1},

		Policies: map[string]consumer.Policy{
			payments: {
				// A schedule of the team's own: after 10 minutes, and then every 2 hours, three times.
				Tiers:       divided([]time.Duration{10 * time.Minute, 2 * time.Hour}, divide),
				MaxAttempts: 5,
				OnTerminal:  consumer.Stop, // the partition waits until a person has looked
				Jitter:      -1,            // default 0.1; here the output is to be the same each time
			},
			mails: {
				Tiers:         divided(retrytopics.Standard, divide),
				MaxRetryAfter: 2 * time.Hour / time.Duration(divide), // the most that the gateway may ask for
				OnExhausted:   consumer.Discard,                      // counted and logged; a mail of yesterday is of no use
				Jitter:        -1,
			},
			clicks: {
				Tiers:       []time.Duration{}, // not nil, empty: one delivery
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
