package dlq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sidingkafka/siding/internal/client"
)

// PruneRecords returns the records of deleted letters that the ledger has, the earliest first. It
// reads the ledger, and uses no earlier Read. An error joins an [*EntryError] for each record that
// cannot be read; the others are returned.
func (l *Ledger) PruneRecords(ctx context.Context) ([]PruneRecord, error) {
	last := map[string]PruneRecord{}
	var errs []error
	err := NewLedger(l.topic, l.name, l.opts...).Read(ctx, nil, func(n *LedgerRecord) {
		switch p, err := ParsePruneRecord(n); {
		case err != nil:
			errs = append(errs, err)
		case p != nil:
			last[p.ID] = *p
		case strings.HasPrefix(n.Run, pruneKey):
			delete(last, strings.TrimPrefix(n.Run, pruneKey))
		}
	})
	if err != nil && !errors.Is(err, ErrNewerVersion) {
		return nil, err
	}
	all := make([]PruneRecord, 0, len(last))
	for _, p := range last {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b PruneRecord) int { return strings.Compare(a.ID, b.ID) })
	return all, errors.Join(errs...)
}

// recordPrune writes a record of deleted letters, and waits until all replicas in sync have it.
func (l *Ledger) recordPrune(ctx context.Context, p *PruneRecord) error {
	r, err := p.record(l.name)
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
