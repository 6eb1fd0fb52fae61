package letterindex

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
)

// freeze lists the bounds of a topic meanwhile, since over a slow link that takes seconds. The
// function that it returns waits for them.
func freeze(ctx context.Context, topic string, opts []kgo.Opt) func() (dlq.Cursor, error) {
	var cursor dlq.Cursor
	var err error
	frozen := make(chan struct{})
	go func() {
		defer close(frozen)
		if cursor, err = dlq.Freeze(ctx, topic, opts...); err != nil {
			err = fmt.Errorf("letterindex: %w", err)
		}
	}()
	return func() (dlq.Cursor, error) {
		<-frozen
		return cursor, err
	}
}

// tuned returns a ledger with other options, or a new one if there is none.
func tuned(ledger *dlq.Ledger, topic, name string, opts []kgo.Opt) *dlq.Ledger {
	if ledger == nil {
		ledger = dlq.NewLedger(topic, name)
	}
	ledger.SetOpts(opts...)
	return ledger
}
