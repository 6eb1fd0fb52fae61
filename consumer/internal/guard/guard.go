// Package guard decides when the records of a topic wait because too many of them fail, so that an
// outage dead-letters none, and no healthy record waits for others' faults. It has the model of a
// topic with which such a machine is played, and what the breaker and retry budget of package
// breaker do there.
package guard

// Outcome is how a run of a record ended, as far as the guard is concerned.
type Outcome uint8

const (
	// Void is no run: its handler was cut off, or there was none.
	Void Outcome = iota
	// Good is an answer: the record was handled, or its failure has a name, by a rule or the
	// handler.
	Good
	// Failed is a retryable failure.
	Failed
	// Defect is a panic, or a failure that is terminal because nothing has named it.
	Defect
)
