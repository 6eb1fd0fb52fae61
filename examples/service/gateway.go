package main

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/sidingkafka/siding/examples/service/billing"
)

// gateway is the adapter to an invented payment provider. It is busy for the first charge of the
// card "slow", refuses the card "stolen", and charges each key once.
type gateway struct {
	out io.Writer

	mu      sync.Mutex
	asked   map[string]bool // by key
	charged map[string]bool // by key
	paid    func(card string)
}

func (g *gateway) Charge(_ context.Context, key, card string, cents int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	again := g.asked[key]
	g.asked[key] = true
	switch {
	case card == "stolen":
		return fmt.Errorf("%w: reported as stolen", billing.ErrRefused)
	case card == "slow" && !again:
		fmt.Fprintf(g.out, "%s: busy\n", key)
		return fmt.Errorf("%w: 503", billing.ErrBusy)
	case !g.charged[key]:
		g.charged[key] = true
		fmt.Fprintf(g.out, "%s: %d cents from card %s\n", key, cents, card)
	}
	g.paid(card)
	return nil
}
