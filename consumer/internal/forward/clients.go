package forward

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/clock"
)

// Clients are the clients of a process by which its lanes' copies go: one that batches them, and
// one that sends large copies alone, made when it is first needed.
type Clients struct {
	batched producers
	single  singleSender
	ctx     context.Context // ends with the process's Run
	clock   *clock.Clock
}

// NewClients returns clients that batched and alone make. Waits for brokers end with ctx.
func NewClients(ctx context.Context, clk *clock.Clock, batched, alone func() (*kgo.Client, error)) *Clients {
	return &Clients{batched: producers{open: batched}, single: singleSender{producers: producers{open: alone}}, ctx: ctx, clock: clk}
}

// Client returns the client that batches copies. It may be replaced at any time, and closed once
// its last copy has come back.
func (cl *Clients) Client() (*kgo.Client, error) {
	p, err := cl.batched.current()
	if err != nil {
		return nil, err
	}
	return p.Client, nil
}

// Close closes the clients; no other is made.
func (cl *Clients) Close() {
	cl.single.producers.close()
	cl.batched.close()
}
