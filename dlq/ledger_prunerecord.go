package dlq

import (
	"context"
	"fmt"

	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
)

// recordPrune writes a record of deleted letters, and waits until all replicas in sync have it.
func (l *Ledger) recordPrune(ctx context.Context, p *ledgerrecord.Prune) error {
	r, err := p.Record(l.name)
	if err != nil {
		return err
	}
	cl, err := client.New(writeOpts(l.opts)...)
	if err != nil {
		return err
	}
	defer cl.Close()
	if err := cl.ProduceSync(ctx, r).FirstErr(); err != nil {
		return fmt.Errorf("record it in %q: %w", l.name, ended(ctx, err))
	}
	return nil
}
