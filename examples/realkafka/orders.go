// Package realkafka shows a team's own suite on real Kafka in containers:
//
//	go test ./... -v      # in this folder, with a Docker Engine
//
// This file is the team's code, and orders_test.go the suite: integration starts Apache Kafka, and consumertest makes the same
// assertions there that it makes on the embedded broker in unit tests. Without a Docker Engine the suite is skipped and says
// why; in CI (the environment variable CI is true) that is a failure.
//
// The folder is a module of its own, so that the dependencies of containers stay out of the service's go.mod. A team does the
// same: a nested module for the suite, which requires the service and github.com/sidingkafka/siding/integration.
package realkafka

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
)

// Ledger is where orders are booked.
type Ledger interface {
	Book(ctx context.Context, key string, order []byte) error
}

// ErrLocked is the ledger during its nightly closing.
var ErrLocked = errors.New("the ledger is locked")

// Config is what the service runs with.
func Config(ledger Ledger, kafka ...kgo.Opt) consumer.Config {
	return consumer.Config{
		Group:  "booking",
		Topics: []string{"orders"},
		Kafka:  kafka,
		Policy: consumer.Policy{Tiers: []time.Duration{time.Second, 5 * time.Second}},
		Classifier: classify.Classifier{Rules: []classify.Rule{
			classify.Is(ErrLocked, classify.VerdictRetry, "ledger.locked"),
		}},
		Handler: func(ctx context.Context, r *kgo.Record) error {
			return ledger.Book(ctx, consumer.FactsOf(ctx, r).IdempotencyKey(), r.Value)
		},
	}
}
