// Package billing is the domain: it charges orders. It knows orders and payments, but no topics,
// offsets or retries.
//
// It imports only siding's package classify, which needs the standard library alone. With classify
// the domain states what an error means, since it knows best. The caller (a consumer, an HTTP
// handler, a batch) may act on that or not.
package billing

import (
	"context"
	"errors"
	"fmt"

	"github.com/sidingkafka/siding/classify"
)

// Order is an order to be paid.
type Order struct {
	ID    string `json:"id"`
	Card  string `json:"card"`
	Cents int    `json:"cents"`
}

// Gateway is the port to the payment provider. The key is the same for each attempt of a charge, so
// that the provider executes it once.
type Gateway interface {
	Charge(ctx context.Context, key, card string, cents int) error
}

// The errors of a gateway that the domain distinguishes. An adapter wraps them.
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

// meaning classifies a failed charge. Other errors stay as they are: siding's built-in rules know
// networks, databases and statuses, and an error that no rule knows is terminal.
func meaning(err error) error {
	switch {
	case errors.Is(err, ErrBusy):
		return classify.As(classify.Retryable(err), "payment.busy")
	case errors.Is(err, ErrRefused):
		return classify.As(classify.Terminal(err), "payment.refused")
	}
	return err
}
