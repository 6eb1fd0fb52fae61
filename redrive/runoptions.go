package redrive

// The options of one call: operator, reason, pace.

import (
	"context"
	"errors"
	"fmt"
)

// RunOptions are the options of one call of [Redriver.Run] or [Redriver.Resume].
type RunOptions struct {
	// By is the operator's name, and Why the reason for the redrive. Both are kept with the run and
	// in the ledger. By is required. Each has 4,096 bytes at most.
	By, Why string
	// Pace is the speed of the run, and the limits at which it aborts itself.
	Pace Pace
	// Veto is asked while the run is being claimed, at the point where a [Condition] is checked: no
	// other process can begin, end or continue a run of the topic then, so what it reads in the
	// ledger holds when the claim is written. If it returns an error, nothing is written, and the
	// call returns an error that wraps it. It may be called several times. It is for callers that
	// decide by themselves: between the decision and the claim any time may pass. Nil allows all.
	Veto func(context.Context) error
	// On gets the run's progress several times a second, from one goroutine. It must not block for
	// long. Nil is allowed.
	On func(Event)
}

// vetoed returns why the caller forbids the claim; nil if it allows it.
func (o *RunOptions) vetoed(ctx context.Context) error {
	if o.Veto == nil {
		return nil
	}
	if err := o.Veto(ctx); err != nil {
		return fmt.Errorf("the run was not claimed: %w", err)
	}
	return nil
}

// AbortOptions are the options of one call of [Redriver.Abort].
type AbortOptions struct {
	// By is the operator's name, and Why the reason for the abort. The run's cause has both. By is
	// required. Each has 4,096 bytes at most.
	By, Why string
}

// maxReason bounds an operator's name and reason. The run's record has both, and is written every
// five seconds; beyond what a broker takes, a run could begin and not be ended.
const maxReason = 4096

// signed checks an operator's name and reason.
func signed(by, why string) error {
	if by == "" {
		return errors.New("the option By is empty: name the operator")
	}
	if n := max(len(by), len(why)); n > maxReason {
		return fmt.Errorf("the option By or Why has %d bytes, and %d are the most: name a ticket", n, maxReason)
	}
	return nil
}
