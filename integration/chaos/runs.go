package chaos

import (
	"fmt"
	"time"
)

// verdict is how a run ended.
type verdict string

const (
	verdictNone     verdict = ""       // it did not: its process died before
	verdictPassed   verdict = "passed" // handled
	verdictFailed   verdict = "failed" // retryable
	verdictTerminal verdict = "terminal"
	verdictDiscard  verdict = "discard"
	verdictPanic    verdict = "panic"
	verdictOutage   verdict = "outage" // retryable: what the handler calls was down
	verdictPart     verdict = "part"   // the same, while it was down in part, or at times
	// with an error, after its lane was taken: it does not count
	verdictDrained verdict = "drained"
)

// down reports whether what the handler calls was down.
func (v verdict) down() bool { return v == verdictOutage || v == verdictPart }

// mayStay reports whether a record may stay where it is after such a run, in a hold.
func (v verdict) mayStay() bool {
	return v == verdictFailed || v.down() || v == verdictPanic
}

// tp is a physical partition.
type tp struct {
	topic     string
	partition int32
}

// run is one call of a handler, as journals tell it.
type run struct {
	member string // who ran it
	number int64  // of the member's runs
	id     int64  // of the record

	// where the delivery was read
	topic     string
	partition int32
	offset    int64

	attempt    int
	due        int64 // milliseconds; what the copy's header says, 0 on a source
	start, end int64 // nanoseconds; end is 0 if the process died before
	verdict    verdict
	own        bool // the team's handler failed: no script says what follows
	line       int  // of the journal
	life       int  // how often the record had been redriven
	stalled    bool // it failed, and its process was suspended in its time, or got no CPU time
	lane       tp   // whose record it was: the source's partition
}

func (r *run) String() string {
	at := func(nanos int64) string { return time.Unix(0, nanos).Format("15:04:05.000000") }
	end := "did not end"
	if r.end != 0 {
		end = fmt.Sprintf("%s %s", at(r.end), r.verdict)
	}
	return fmt.Sprintf("%s.journal:%d: record %d, attempt %d, read at %s/%d/%d, %s to %s",
		r.member, r.line, r.id, r.attempt, r.topic, r.partition, r.offset, at(r.start), end)
}
