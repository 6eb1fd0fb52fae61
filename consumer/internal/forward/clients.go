package forward

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/clock"
)

// Clients are the clients that write the copies of a process, one for each effort. Each is made
// when it is first needed. The methods are safe for concurrent use.
type Clients struct {
	by     [efforts]producers
	single singleSender
	ctx    context.Context // ends with the process's Run
	clock  *clock.Clock
}

// NewClients returns clients that batched, alone and tight will make. Waits for brokers end with
// ctx.
func NewClients(ctx context.Context, clk *clock.Clock, batched, alone, tight func() (*kgo.Client, error)) *Clients {
	return &Clients{by: [efforts]producers{{open: batched}, {open: alone}, {open: tight}}, ctx: ctx, clock: clk}
}

// Client returns the client that batches copies. The next call may return another one: a client can
// be replaced, and is then closed after the promise of its last copy. An error means that none can
// be made.
func (cl *Clients) Client() (*kgo.Client, error) {
	p, err := cl.by[batched].current()
	if err != nil {
		return nil, err
	}
	return p.Client, nil
}

// Close closes the clients, and makes no other.
func (cl *Clients) Close() {
	for i := range cl.by {
		cl.by[efforts-1-effort(i)].close()
	}
}
