package consumer

// copyResult is what became of a copy that came back.
type copyResult uint8

const (
	copyDone      copyResult = iota // safe, or its lane's no more
	copyRefused                     // until later
	copyUnheard                     // a note that no ledger takes: its record is finished without
	copyAlone                       // to be sent alone
	copyDiverted                    // too large for a retry topic: a dead letter now, to be sent alone
	copyOmitted                     // safe, without its value
	copyDiscarded                   // too large for the dead-letter topic: dropped
	copyStopped                     // the same: the lane halts on its record
)
