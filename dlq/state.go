package dlq

// The states of dead letters.

// State is what became of a dead letter. The empty state is that of a letter without an entry.
type State string

// The states of letters in a ledger. A letter without an entry is open, and so are an [Unknown] and
// a [Reopened] one.
const (
	Redriven  State = "redriven"  // written to its target; the outcome is not known yet
	Succeeded State = "succeeded" // redriven, and processed
	Failed    State = "failed"    // redriven, and failed again, as a new letter
	Discarded State = "discarded" // by the handler, or by an operator
	Expired   State = "expired"   // deleted by retention while open
	Duplicate State = "duplicate" // a copy of an earlier letter
	Unknown   State = "unknown"   // redriven, but its outcome cannot be known

	Unfollowed State = "unfollowed" // redriven to a target whose consumers report no outcome

	Compensated State = "compensated" // discarded by an operator: a compensating action resolved it
	Reopened    State = "reopened"    // by an operator, though it was discarded or redriven
)

// states are the states that an entry can have.
var states = [...]State{Redriven, Succeeded, Failed, Discarded, Expired, Duplicate, Unknown, Unfollowed, Compensated, Reopened}

// Resolves reports whether a letter of that state is no longer open.
func (s State) Resolves() bool { return s != "" && s != Unknown && s != Reopened }

// Discards reports whether a letter of that state was discarded, by whomever: [Ledger.Reopen] can
// withdraw that.
func (s State) Discards() bool { return s == Discarded || s == Compensated }

// resolves reports whether the state is about the letter's record, which was redriven or discarded.
// Such a state also resolves copies of the letter that failed before.
func (s State) resolves() bool { return s.Resolves() && s != Duplicate && s != Expired }

// version returns the version of an entry with the state: the first version that has it.
func (s State) version() byte {
	switch s {
	case Compensated, Reopened:
		return 3
	case Unfollowed:
		return 2
	}
	return 1
}
