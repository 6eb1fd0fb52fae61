package trace

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

// Act is what a script makes a handler do.
type Act string

// What scripts do.
const (
	ActPass     Act = "pass"     // returns nil
	ActRetry    Act = "retry"    // fails the first attempts, retryable, then passes
	ActAfter    Act = "after"    // the same, and asks for a wait
	ActHang     Act = "hang"     // the same, by waiting until its context ends
	ActTerminal Act = "terminal" // fails, terminal
	ActDiscard  Act = "discard"
	ActPanic    Act = "panic"
	ActIgnore   Act = "ignore" // ignores its context for a while, then returns nil
	ActRedriven Act = "redriven"
	ActKill     Act = "kill"   // fails the first attempts, then kills its process each time
	ActDecode   Act = "decode" // the same, while it is decoded
	ActStuck    Act = "stuck"  // ignores its context for StuckFor, then returns nil
)

// StuckFor is how long a stuck handler takes.
const StuckFor = 20 * time.Second

// Always is the number of failing attempts of a record that never passes.
const Always = 1000

// Script says how a record's handler fails. It depends on nothing but the number of the attempt, so
// a repetition does the same. Only an outage makes any attempt fail.
type Script struct {
	ID    int64 // the record's number in the run
	Act   Act
	Times int           // attempts that fail before one passes
	Class string        // of the failures
	Work  time.Duration // how long a run takes
}

// Header is the header that holds the script.
func (s Script) Header() kgo.RecordHeader {
	return kgo.RecordHeader{Key: scriptHeader, Value: fmt.Appendf(nil, "%d %s %d %s %d", s.ID, s.Act, s.Times, s.Class, s.Work.Microseconds())}
}

// ParseScript returns the script of a record; ok is false if it has none.
func ParseScript(h []kgo.RecordHeader) (s Script, ok bool) {
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
		return Script{ID: id, Act: Act(f[1]), Times: times, Class: f[3], Work: time.Duration(work) * time.Microsecond}, true
	}
	return s, false
}

// Ending is what has to become of a record.
type Ending struct {
	Place    Place
	Attempts int    // deliveries, the last one included
	Reason   string // of a dead letter
	Class    string // of the last failure; empty if it was handled at once
}

// Kills reports whether the record kills processes.
func (s Script) Kills() bool { return s.Act == ActKill || s.Act == ActDecode }

// Ignores reports whether the handler ignores its context.
func (s Script) Ignores() bool { return s.Act == ActIgnore || s.Act == ActStuck }

// KillsAt reports whether an attempt kills its process.
func (s Script) KillsAt(attempt int) bool { return s.Kills() && attempt > s.Times }

// ReasonCrashLoop is the reason of letters whose records killed their processes.
const ReasonCrashLoop = "crash-loop"

// Place is where a record ends.
type Place string

// Where records end.
const (
	PlaceHandled   Place = "handled"
	PlaceDead      Place = "dead-lettered"
	PlaceDiscarded Place = "discarded"
)

// Ending returns what has to become of the record under a policy of so many attempts, after it was
// redriven so often. failedAs returns the class with which an attempt failed whatever the script
// says, and "" if it did not; nil means that none did.
func (s Script) Ending(maxAttempts, life int, failedAs func(attempt int) string) Ending {
	class := ""
	for n := 1; ; n++ {
		is := s.attempt(n, life)
		if failedAs != nil && failedAs(n) != "" {
			is = Ending{Class: failedAs(n)}
		}
		is.Attempts = n
		switch {
		case is.Place == PlaceHandled:
			is.Class = class
			return is
		case is.Place != "":
			return is
		}
		if class = is.Class; n >= maxAttempts {
			return Ending{Place: PlaceDead, Attempts: n, Reason: "exhausted", Class: class}
		}
	}
}

// attempt returns how an attempt ends the record. It has no place if the record is to be tried
// again.
func (s Script) attempt(n, life int) Ending {
	fails := n <= s.Times
	switch {
	case s.Act == ActRedriven && life > 0:
	case s.Act == ActTerminal, s.Act == ActRedriven:
		return Ending{Place: PlaceDead, Reason: "terminal", Class: s.Class}
	case s.Act == ActPanic:
		return Ending{Place: PlaceDead, Reason: "panic", Class: "panic.string"}
	case s.Act == ActDiscard:
		return Ending{Place: PlaceDiscarded, Class: s.Class}
	case s.Act == ActHang && fails:
		return Ending{Class: classify.ClassTimeout}
	case s.fallible() && fails:
		return Ending{Class: s.Class}
	case s.Act == ActKill:
		return Ending{Place: PlaceDead, Reason: ReasonCrashLoop, Class: "crash.handler"}
	case s.Act == ActDecode:
		return Ending{Place: PlaceDead, Reason: ReasonCrashLoop, Class: "crash.decode"}
	}
	return Ending{Place: PlaceHandled}
}

// fallible reports whether the first attempts fail as the script's class says.
func (s Script) fallible() bool { return s.Act == ActRetry || s.Act == ActAfter || s.Kills() }

// ClassOutage is the class of failures in an outage.
const ClassOutage = "billing.down"

// ClassRepaired is the class of records that pass once they are redriven.
const ClassRepaired = "price.missing"
