package redrive

import "errors"

// RunOptions are the options of one call of [Redriver.Run] or [Redriver.Resume].
type RunOptions struct {
	// By is the operator's name, and Why the reason for the redrive. Both are kept with the run and
	// in the ledger. By is required.
	By, Why string
	// Pace is the speed of the run, and the limits at which it aborts itself.
	Pace Pace
	// On gets the run's progress several times a second, from one goroutine. It must not block for
	// long. Nil is allowed.
	On func(Event)
}

// AbortOptions are the options of one call of [Redriver.Abort].
type AbortOptions struct {
	// By is the operator's name, and Why the reason for the abort. The run's cause has both. By is
	// required.
	By, Why string
}

// named checks that the operator has a name.
func named(by string) error {
	if by == "" {
		return errors.New("the option By is empty: name the operator")
	}
	return nil
}
