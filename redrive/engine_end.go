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

// A run ends done, aborted or interrupted. It first waits for transactions that are being ended.
// Their letters are then committed or open again, and their entries go with the final record.

// drain waits for transactions that are being ended.
func (e *engine) drain() error {
	for e.sender.ending() {
		if err := e.transactionEnded(<-e.sender.ends); err != nil {
			return err
		}
	}
	return nil
}

// conclude writes the final state with all pending records, and removes the selection.
func (e *engine) conclude(ctx context.Context, state State, cause string) error {
	now := time.Now()
	e.state, e.waiting = state, ""
	e.recordVerdicts(e.flights.Resolve(func(string, headers.Position) inflight.Progress { return inflight.Behind }))
	rec := e.record(now)
	rec.end(state, cause, now)
	e.sender.record(rec.last(e.topics.ledger)...)
	if err := e.write(ctx, e.sender.next, e.sender.records); err != nil {
		return uncertain(err)
	}
	e.sender.records = nil
	*e.rec = *rec
	e.report("")
	return nil
}

// finish ends a run whose window is over, after a poll of the whole window.
func (e *engine) finish(ctx context.Context) error {
	if err := e.drain(); err != nil {
		return err
	}
	select {
	case <-e.alarm.fired: // by a record of the last poll
		return e.abort()
	default:
	}
	ctx, cancel := lingering(ctx)
	defer cancel()
	return e.conclude(ctx, Done, "")
}

// abort ends a run whose alarm fired.
func (e *engine) abort() error {
	cause, seen := e.alarm.result()
	e.abortErr = &FailedAgainError{Topic: e.topics.dlq, Run: e.rec.ID, Cause: cause, Seen: seen}
	// returned even if the ledger cannot be written: the run is aborted
	return errors.Join(e.abortErr, e.halt(cause))
}

// abandon ends a run whose dead-letter topic was deleted or recreated.
func (e *engine) abandon() error {
	e.alarm.withdraw(ErrTopicRecreated.Error())
	return errors.Join(fmt.Errorf("run %s: %w", e.rec.ID, ErrTopicRecreated), e.halt(ErrTopicRecreated.Error()))
}

// halt aborts the run. Uncommitted transactions are aborted too.
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

// lingering returns a context that ends closeTimeout after ctx.
func lingering(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(closeTimeout, cancel) })
	return longer, func() {
		stop()
		cancel()
	}
}

// errUnwatched is wrapped by the error of a run whose watch could not start.
var errUnwatched = errors.New("the watch could not start")

// unwatched handles the failed start of a watch. If ctx ended or a permission is missing, it
// interrupts the run; otherwise the run is taken back.
func (e *engine) unwatched(ctx context.Context, err error) error {
	_, denied := errors.AsType[*permission.DeniedError](err)
	switch {
	case ctx.Err() != nil:
		return e.interrupt(context.Cause(ctx))
	case denied:
		return e.interrupt(err)
	}
	return fmt.Errorf("%w: %w", errUnwatched, err)
}

// interrupt leaves the run unfinished, to be resumed.
func (e *engine) interrupt(cause error) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	e.sender.handOver()
	if err := e.drain(); err != nil && !errors.Is(err, txn.ErrUncertain) {
		return err
	}
	now := time.Now()
	rec := e.record(now)
	rec.Stopped, rec.WindowEnds = now, time.Time{} // a resumed run watches for a whole window
	// a stopped run does not send
	rec.Waiting = "it was stopped at " + now.UTC().Format(time.RFC3339) + ", and waits to be resumed or aborted"
	if err := e.writers.Write(ctx, e.sender.next, append(e.sender.records, rec.ledgerRecord(e.topics.ledger))...); err == nil {
		*e.rec = *rec
	}
	e.rec.Counts = rec.Counts
	return cause
}
