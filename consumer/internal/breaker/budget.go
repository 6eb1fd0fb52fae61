package breaker

import "time"

// HoldsRetries reports whether the retries that failed again have used up the budget. A retry that
// runs counts as failed while the budget is tight: else all lanes would take one at the same
// moment.
func (b *Breaker) HoldsRetries(now time.Duration) bool {
	b.turn(now)
	if b.set.BudgetOff {
		return false
	}
	w := &b.window.sum
	limit := max(b.set.BudgetFloor, int64(b.set.BudgetShare*float64(w.runs())))
	switch {
	case w.again >= limit:
		b.tight = true
	case w.again < limit/2:
		b.tight = false
	}
	if b.tight {
		return w.again+b.retrying >= limit
	}
	return false
}

// BeginRetry notes that a retry begins to run, and EndRetry that it has ended.
func (b *Breaker) BeginRetry() { b.retrying++ }

// EndRetry ends what BeginRetry began.
func (b *Breaker) EndRetry() { b.retrying-- }
