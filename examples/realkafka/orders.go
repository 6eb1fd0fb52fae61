// Package realkafka shows a team's own suite on real Kafka in containers:
//
//	go test ./... -v      # in this folder, with a Docker Engine
//
// This file is the team's code, and orders_test.go is the suite. Package integration starts Apache
// Kafka. Package consumertest makes the same assertions there as on the embedded broker in unit
// tests. Without a Docker Engine the suite is skipped with the reason; in CI (the environment
// variable CI is true) that is a failure.
//
// The folder is a module of its own, which keeps the dependencies of containers out of the
// service's go.mod. A team does the same: a nested module for the suite, which requires the service
// and github.com/sidingkafka/siding/integration.
package realkafka

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
)

// Ledger books orders.
type Ledger interface {
	Book(ctx context.Context, key string, order []byte) error
}

// ErrLocked means that the ledger is locked for its nightly closing.
var ErrLocked = errors.New("the ledger is locked")

// Config returns the service's configuration.
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
			return ledger.Book(ctx, consumer.DeliveryOf(ctx, r).IdempotencyKey(), r.Value)
		},
	}
}
