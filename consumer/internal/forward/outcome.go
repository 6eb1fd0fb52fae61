package forward

// Outcome is what became of a copy when kgo called its promise.
type Outcome uint8

// The outcomes of a copy.
const (
	done     Outcome = iota // safe, or not its lane's any more, or tried again in silence
	refused                 // until later
	queued                  // to be sent alone
	Diverted                // too large for a retry topic: a dead letter now, to be sent alone
	Omitted                 // safe, without its value
	Dropped                 // too large for the dead-letter topic: the record is discarded
	Halted                  // the same, and the lane halts on the record
	NoteLost                // a note that no ledger takes: its record is finished without it
)
