// Package handlertest shows how a team tests its handler, with all of production's retries, in
// milliseconds:
//
//	go test ./examples/handlertest
//
// This file is the team's code: a handler that orders labels from a carrier, and its configuration.
// shipping_test.go runs both on an embedded broker in virtual time, where a delay of five minutes
// costs nothing. It asserts where each record went, when, and why.
package handlertest

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
)

// Parcel is the payload of the topic parcels.
type Parcel struct {
	Order   string `json:"order"`
	Address string `json:"address"`
}

// Carrier makes labels. Its errors resemble an HTTP client's: they have a method StatusCode, and
// some have RetryAfter. Siding's built-in rules know both.
type Carrier interface {
	Label(ctx context.Context, key string, p Parcel) error
}

// ErrAddress means that a parcel has no address to go to.
var ErrAddress = errors.New("no such address")

// Config returns the service's configuration; main adds the brokers.
func Config(carrier Carrier) consumer.Config {
	return consumer.Config{
		Group:  "shipping",
		Topics: []string{"parcels"},
		Handler: consumer.Decode(consumer.JSON[Parcel], func(ctx context.Context, r *kgo.Record, p Parcel) error {
			if p.Address == "" {
				return classify.As(classify.Terminal(fmt.Errorf("order %s: %w", p.Order, ErrAddress)), "parcel.address")
			}
			return carrier.Label(ctx, consumer.DeliveryOf(ctx, r).IdempotencyKey(), p)
		}),
	}
}
