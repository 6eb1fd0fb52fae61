// Package runstate has the final states of redrive runs, as ledgers name them. Package redrive
// writes them, and package dlq looks for runs in other states before an operator decides about
// letters.
package runstate

// The final states. A run in any other state is unfinished.
const (
	Done    = "done"
	Aborted = "aborted"
)

// Finished reports whether a state is final.
func Finished(state string) bool { return state == Done || state == Aborted }
