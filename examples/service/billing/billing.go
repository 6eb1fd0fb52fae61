// Package billing is the domain: it charges orders. It knows orders and payments, and nothing of topics, offsets or retries.
// Of siding it imports classify alone, which needs the standard library alone: with it an error says what it means, where
// that is known best, and whoever runs the domain (a consumer, an HTTP handler, a batch) may act on it or not.
package billing

import (
	"context"
	"errors"
	"fmt"

	"github.com/sidingkafka/siding/classify"
)

// Order is what is to be paid.
type Order struct {
	ID    string `json:"id"`
	Card  string `json:"card"`
	Cents int    `json:"cents"`
}

// Gateway is the port to the payment provider. The key is the same whenever the same charge is tried again, so that the
// provider makes it once.
type Gateway interface {
	Charge(ctx context.Context, key, card string, cents int) error
}

// What a gateway's errors are for the domain. An adapter wraps them.
var (
	ErrBusy    = errors.New("the payment provider is busy")
	ErrRefused = errors.New("the card is refused")
)

// Service charges orders.
type Service struct{ Gateway Gateway }

// Charge charges an order once for a key.
func (s *Service) Charge(ctx context.Context, key string, o Order) error {
	if o.Cents == 0 {
		return classify.Discard(fmt.Errorf("order %s: nothing to pay", o.ID))
	}
	if err := s.Gateway.Charge(ctx, key, o.Card, o.Cents); err != nil {
		return meaning(fmt.Errorf("order %s: %w", o.ID, err))
	}
	return nil
}

// meaning says what a failed charge means for its order. What it does not know it leaves alone: siding's built-in rules know
// networks, databases and statuses, and whatever nobody knows is terminal.
func meaning(err error) error {
	switch {
	case errors.Is(err, ErrBusy):
		return classify.As(classify.Retryable(err), "payment.busy")
	case errors.Is(err, ErrRefused):
		return classify.As(classify.Terminal(err), "payment.refused")
	}
	return err
}
