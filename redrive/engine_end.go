package redrive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/internal/inflight"
	"github.com/sidingkafka/siding/redrive/internal/permission"
	"github.com/sidingkafka/siding/redrive/internal/txn"
)

// A run ends done, aborted or interrupted. Before any of these the transactions that are being
// ended are waited for: what they carried is committed by then, goes with the final record, or is
// open again.

// drain waits for the transactions that are being ended.
func (e *engine) drain() error {
	for e.sender.ending() {
		if err := e.transactionEnded(<-e.sender.ends); err != nil {
			return err
		}
	}
	return nil
}

// conclude writes the final state with all other records for the ledger, and removes the selection.
func (e *engine) conclude(ctx context.Context, state State, cause string) error {
	now := time.Now()
	e.state, e.waiting = state, ""
	e.settle(e.flights.Resolve(func(string, headers.Position) inflight.Progress { return inflight.Behind }))
	rec := e.record(now)
	rec.end(state, cause, now)
	e.sender.note(rec.last(e.topics.ledger)...)
	if err := e.write(ctx, e.sender.next, e.sender.notes); err != nil {
		return uncertain(err)
	}
	e.sender.notes = nil
	*e.rec = *rec
	e.report("")
	return nil
}

// finish ends a run whose window is over, and which has looked since.
func (e *engine) finish(ctx context.Context) error {
	if err := e.drain(); err != nil {
		return err
	}
	select {
	case <-e.alarm.fired: // by what was read just now
		return e.abort()
	default:
	}
	ctx, cancel := lingering(ctx)
	defer cancel()
	return e.conclude(ctx, Done, "")
}

// abort ends a run whose class has reappeared.
func (e *engine) abort() error {
	cause, seen := e.alarm.result()
	e.abortErr = &FailedAgainError{Topic: e.topics.dlq, Run: e.rec.ID, Cause: cause, Seen: seen}
	// that it aborts is true also where the ledger cannot be told
	if err := e.halt(cause); err != nil {
		return errors.Join(e.abortErr, err)
	}
	return e.abortErr
}

// abandon ends a run whose letters are gone.
func (e *engine) abandon() error {
	e.alarm.withdraw(ErrTopicRecreated.Error())
	err := fmt.Errorf("run %s: %w", e.rec.ID, ErrTopicRecreated)
	if failed := e.halt(ErrTopicRecreated.Error()); failed != nil {
		return errors.Join(err, failed)
	}
	return err
}

// halt aborts: what is in a transaction that is not committed yet never will be.
func (e *engine) halt(cause string) error {
	if err := e.sender.drop(); err != nil {
		return err
	}
	if err := e.drain(); err != nil {
		return err
	}
	if e.poller.underWay() {
		e.applyPoll(e.poller.last(pollGrace))
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return e.conclude(ctx, Aborted, cause)
}

// lingering is a context that outlives another one by closeTimeout.
func lingering(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(closeTimeout, cancel) })
	return longer, func() {
		stop()
		cancel()
	}
}

// errUnwatched is wrapped by the error of a run that could not begin to watch.
var errUnwatched = errors.New("the watch could not begin")

// unwatched ends a run that could not begin to watch: by ctx, by a permission that is missing, or
// to be taken back.
func (e *engine) unwatched(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return e.interrupt(context.Cause(ctx))
	}
	if _, denied := errors.AsType[*permission.DeniedError](err); denied {
		return e.interrupt(err)
	}
	return fmt.Errorf("%w: %w", errUnwatched, err)
}

// interrupt leaves a run as it is, to be resumed.
func (e *engine) interrupt(cause error) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	e.sender.handOver()
	if err := e.drain(); err != nil && !errors.Is(err, txn.ErrUncertain) {
		return err
	}
	now := time.Now()
	rec := e.record(now)
	rec.Stopped = &now
	// nobody sends
	rec.Waiting = "it was stopped at " + now.UTC().Format(time.RFC3339) + ", and waits to be resumed or aborted"
	if err := e.writers.Write(ctx, e.sender.next, append(e.sender.notes, rec.note(e.topics.ledger))...); err == nil {
		*e.rec = *rec
	}
	e.rec.Counts = rec.Counts
	return cause
}
