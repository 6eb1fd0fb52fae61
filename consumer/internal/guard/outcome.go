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
	// FailedSuspect is a retryable failure of a record that may have killed a process. It strains a
	// topic, and holds none: no other record of its partition could probe.
	FailedSuspect
)

// OfSuspect is what the outcome of a run says if its record may have killed a process.
func (o Outcome) OfSuspect() Outcome {
	switch o {
	case Failed:
		return FailedSuspect
	case Defect:
		return Void
	}
	return o
}

// failed reports whether the run failed retryably.
func (o Outcome) failed() bool { return o == Failed || o == FailedSuspect }

// bad reports whether the outcome speaks for a hold.
func (o Outcome) bad() bool { return o == Failed || o == Defect }
