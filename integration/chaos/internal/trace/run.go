package trace

import (
	"fmt"
	"time"
)

// Verdict is how a run ended.
type Verdict string

// How runs end.
const (
	VerdictNone     Verdict = ""       // it did not: its process died before
	VerdictPassed   Verdict = "passed" // handled
	VerdictFailed   Verdict = "failed" // retryable
	VerdictTerminal Verdict = "terminal"
	VerdictDiscard  Verdict = "discard"
	VerdictPanic    Verdict = "panic"
	VerdictOutage   Verdict = "outage" // retryable: what the handler calls was down
	VerdictPart     Verdict = "part"   // the same, while it was down in part, or at times
	// with an error, after its lane was taken: it does not count
	VerdictDrained Verdict = "drained"
)

// Down reports whether what the handler calls was down.
func (v Verdict) Down() bool { return v == VerdictOutage || v == VerdictPart }

// MayStay reports whether a record may stay where it is after such a run, in a hold.
func (v Verdict) MayStay() bool {
	return v == VerdictFailed || v.Down() || v == VerdictPanic
}

// TP is a physical partition.
type TP struct {
	Topic     string
	Partition int32
}

// Run is one call of a handler, as journals have it.
type Run struct {
	Member string // who ran it
	number int64  // of the member's runs
	ID     int64  // of the record

	// where the delivery was read
	Topic     string
	Partition int32
	Offset    int64

	Attempt    int
	Due        int64 // milliseconds; what the copy's header says, 0 on a source
	Start, End int64 // nanoseconds; end is 0 if the process died before
	Verdict    Verdict
	Own        bool // the team's handler failed: no script says what follows
	line       int  // of the journal
	Life       int  // how often the record had been redriven
	Stalled    bool // it failed, and its process was suspended in its time, or got no CPU time
	Lane       TP   // whose record it was: the source's partition
}

func (r *Run) String() string {
	at := func(nanos int64) string { return time.Unix(0, nanos).Format("15:04:05.000000") }
	end := "did not end"
	if r.End != 0 {
		end = fmt.Sprintf("%s %s", at(r.End), r.Verdict)
	}
	return fmt.Sprintf("%s.journal:%d: record %d, attempt %d, read at %s/%d/%d, %s to %s",
		r.Member, r.line, r.ID, r.Attempt, r.Topic, r.Partition, r.Offset, at(r.Start), end)
}
