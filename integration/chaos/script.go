package chaos

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
)

// scriptHeader is the header of a record that holds its script. A header, not the value: the value
// is the team's, for its own handler.
const scriptHeader = "chaos-script"

// act is what a script makes a handler do.
type act string

const (
	actPass     act = "pass"     // returns nil
	actRetry    act = "retry"    // fails the first attempts, retryable, then passes
	actAfter    act = "after"    // the same, and asks for a wait
	actHang     act = "hang"     // the same, by waiting until its context ends
	actTerminal act = "terminal" // fails, terminal
	actDiscard  act = "discard"
	actPanic    act = "panic"
	actIgnore   act = "ignore" // ignores its context for a while, then returns nil
	actRedriven act = "redriven"
	actKill     act = "kill"   // fails the first attempts, then kills its process each time
	actDecode   act = "decode" // the same, while it is decoded
	actStuck    act = "stuck"  // ignores its context for stuckFor, then returns nil
)

// stuckFor is how long a stuck handler takes.
const stuckFor = 20 * time.Second

// always is the number of failing attempts of a record that never passes.
const always = 1000

// script says how a record's handler fails. It depends on nothing but the number of the attempt, so
// a repetition does the same. Only an outage makes any attempt fail.
type script struct {
	id    int64 // the record's number in the run
	act   act
	times int           // attempts that fail before one passes
	class string        // of the failures
	work  time.Duration // how long a run takes
}

func (s script) header() kgo.RecordHeader {
	return kgo.RecordHeader{Key: scriptHeader, Value: fmt.Appendf(nil, "%d %s %d %s %d", s.id, s.act, s.times, s.class, s.work.Microseconds())}
}

// parseScript returns the script of a record; ok is false if it has none.
func parseScript(h []kgo.RecordHeader) (s script, ok bool) {
	for _, header := range h {
		if header.Key != scriptHeader {
			continue
		}
		f := strings.Split(string(header.Value), " ")
		if len(f) != 5 {
			return s, false
		}
		id, err1 := strconv.ParseInt(f[0], 10, 64)
		times, err2 := strconv.Atoi(f[2])
		work, err3 := strconv.ParseInt(f[4], 10, 64)
		if errors.Join(err1, err2, err3) != nil {
			return s, false
		}
		return script{id: id, act: act(f[1]), times: times, class: f[3], work: time.Duration(work) * time.Microsecond}, true
	}
	return s, false
}

// ending is what has to become of a record.
type ending struct {
	place    place
	attempts int    // deliveries, the last one included
	reason   string // of a dead letter
	class    string // of the last failure; empty if it was handled at once
}

// kills reports whether the record kills processes.
func (s script) kills() bool { return s.act == actKill || s.act == actDecode }

// ignores reports whether the handler ignores its context.
func (s script) ignores() bool { return s.act == actIgnore || s.act == actStuck }

// killsAt reports whether an attempt kills its process.
func (s script) killsAt(attempt int) bool { return s.kills() && attempt > s.times }

// reasonCrashLoop is the reason of letters whose records killed their processes.
const reasonCrashLoop = "crash-loop"

// place is where a record ends.
type place string

const (
	placeHandled   place = "handled"
	placeDead      place = "dead-lettered"
	placeDiscarded place = "discarded"
)

// ending returns what has to become of the record under a policy of so many attempts, after it was
// redriven so often. failedAs returns the class with which an attempt failed whatever the script
// says, and "" if it did not; nil means that none did.
func (s script) ending(maxAttempts, life int, failedAs func(attempt int) string) ending {
	class := ""
	for n := 1; ; n++ {
		is := s.attempt(n, life)
		if failedAs != nil && failedAs(n) != "" {
			is = ending{class: failedAs(n)}
		}
		is.attempts = n
		switch {
		case is.place == placeHandled:
			is.class = class
			return is
		case is.place != "":
			return is
		}
		if class = is.class; n >= maxAttempts {
			return ending{place: placeDead, attempts: n, reason: "exhausted", class: class}
		}
	}
}

// attempt returns how an attempt ends the record. It has no place if the record is to be tried
// again.
func (s script) attempt(n, life int) ending {
	fails := n <= s.times
	switch {
	case s.act == actRedriven && life > 0:
	case s.act == actTerminal, s.act == actRedriven:
		return ending{place: placeDead, reason: "terminal", class: s.class}
	case s.act == actPanic:
		return ending{place: placeDead, reason: "panic", class: "panic.string"}
	case s.act == actDiscard:
		return ending{place: placeDiscarded, class: s.class}
	case s.act == actHang && fails:
		return ending{class: classify.ClassTimeout}
	case s.fallible() && fails:
		return ending{class: s.class}
	case s.act == actKill:
		return ending{place: placeDead, reason: reasonCrashLoop, class: "crash.handler"}
	case s.act == actDecode:
		return ending{place: placeDead, reason: reasonCrashLoop, class: "crash.decode"}
	}
	return ending{place: placeHandled}
}

// fallible reports whether the first attempts fail as the script's class says.
func (s script) fallible() bool { return s.act == actRetry || s.act == actAfter || s.kills() }

// classOutage is the class of failures in an outage.
const classOutage = "billing.down"

// classRepaired is the class of records that pass once they are redriven.
const classRepaired = "price.missing"
