package redrive

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/redrive/internal/permission"
	"github.com/sidingkafka/siding/redrive/internal/txn"
)

// end flushes the copies, writes their ledger entries, and commits after the previous transaction,
// unless the run aborts first or the broker refuses copies. It runs in a goroutine while the loop
// fills the next transaction.
func (s *sender) end(ctx context.Context, t *transaction, before <-chan struct{}) error {
	sent := sync.OnceFunc(func() { close(t.sent) })
	defer sent()
	began := time.Now()
	if err := t.cl.Flush(ctx); err != nil {
		return fmt.Errorf("write copies: %w: %w", txn.ErrUncertain, err)
	}
	t.sending = time.Since(began)
	s.run.writers.Tighten(t.which, false)
	var failed error
	for _, o := range t.copies {
		switch err := t.failed[&o.copy]; {
		case err == nil:
		case refusal(err) != "":
			t.refused = append(t.refused, o)
		case permission.IsDenied(err):
			_ = txn.Abort(t.cl)
			return s.run.writers.Denied(t.which, o.copy.Topic, err)
		case failed == nil:
			failed = fmt.Errorf("write the copy of %v to %s/%d: %w: %w", o.In(s.run.topics.dlq), o.copy.Topic, o.copy.Partition, txn.ErrUncertain, err)
		}
	}
	if len(t.refused) > 0 { // batches behind a refused batch are refused as out of order
		return uncertain(txn.Abort(t.cl))
	}
	if failed != nil {
		return failed
	}
	if err := s.report(ctx, t); permission.IsDenied(err) {
		_ = txn.Abort(t.cl)
		return s.run.writers.Denied(t.which, s.run.topics.ledger, err)
	} else if err != nil {
		return fmt.Errorf("write to the ledger: %w: %w", txn.ErrUncertain, err)
	}
	t.reporting = time.Since(began) - t.sending
	sent()
	select {
	case <-before:
	case <-ctx.Done():
		return fmt.Errorf("commit: %w: %w", txn.ErrUncertain, ctx.Err())
	}
	select {
	case <-s.aborts:
		return uncertain(txn.Abort(t.cl))
	default:
	}
	if s.broken.Load() {
		return fmt.Errorf("the previous transaction was not committed: %w", txn.ErrUncertain)
	}
	if err := client.EndTransaction(ctx, t.cl, kgo.TryCommit, append(t.written, t.notes...)...); err != nil {
		return fmt.Errorf("commit: %w: %w", txn.ErrUncertain, err)
	}
	t.committed = true
	return nil
}

// report writes a transaction's notes and the entries about its copies.
func (s *sender) report(ctx context.Context, t *transaction) error {
	run := s.run
	for _, r := range t.notes {
		t.cl.Produce(ctx, r, t.answered)
	}
	all := entries{ledger: run.topics.ledger, entry: dlq.Entry{
		TopicID: run.topicID, Run: run.rec.ID, At: time.Now(), By: run.rec.By, Why: run.rec.Why, Edited: run.rec.Edit.what(),
	}}
	for _, o := range t.copies {
		state := dlq.Redriven
		if !run.follows(o.group) {
			state = dlq.Unfollowed
		}
		t.write(ctx, all.record(o, state, run.rec.Epochs[o.Partition]))
	}
	if err := t.cl.Flush(ctx); err != nil {
		return err
	}
	for _, err := range t.failed {
		return err
	}
	return nil
}
