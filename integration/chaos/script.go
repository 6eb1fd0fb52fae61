package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
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
	actKill     act = "kill" // kills its process, each time
)

// always is the number of failing attempts of a record that never passes.
const always = 1000

// script says how a record's handler fails. It depends on nothing but the number of the attempt, so
// a repetition does the same.
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
// redriven so often.
func (s script) ending(maxAttempts, life int) ending {
	if s.act == actRedriven && life > 0 {
		return ending{place: placeHandled, attempts: 1}
	}
	switch s.act {
	case actKill:
		return ending{place: placeDead, reason: reasonCrashLoop}
	case actTerminal, actRedriven:
		return ending{place: placeDead, attempts: 1, reason: "terminal", class: s.class}
	case actPanic:
		return ending{place: placeDead, attempts: 1, reason: "panic", class: "panic.string"}
	case actDiscard:
		return ending{place: placeDiscarded, attempts: 1, class: s.class}
	case actRetry, actAfter, actHang:
		class := s.class
		if s.act == actHang {
			class = classify.ClassTimeout
		}
		if s.times >= maxAttempts {
			return ending{place: placeDead, attempts: maxAttempts, reason: "exhausted", class: class}
		}
		return ending{place: placeHandled, attempts: s.times + 1, class: class}
	}
	return ending{place: placeHandled, attempts: 1}
}

// classRepaired is the class of records that pass once they are redriven.
const classRepaired = "price.missing"

// errScripted is what scripts fail with.
var errScripted = errors.New("as the script says")

// play does what the script says for an attempt. own is the team's handler.
func (s script) play(ctx context.Context, r *kgo.Record, own consumer.Handler, timeout time.Duration) error {
	d := consumer.DeliveryOf(ctx, r)
	fail := d.Attempt <= s.times
	if s.work > 0 {
		select {
		case <-time.After(s.work):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	switch {
	case s.act == actRetry && fail:
		return classify.As(classify.Retryable(errScripted), s.class)
	case s.act == actAfter && fail:
		return classify.As(classify.RetryAfter(errScripted, 700*time.Millisecond), s.class)
	case s.act == actHang && fail:
		<-ctx.Done()
		return context.Cause(ctx)
	case s.act == actTerminal, s.act == actRedriven && d.RedriveID == "":
		return classify.As(classify.Terminal(errScripted), s.class)
	case s.act == actDiscard:
		return classify.As(classify.Discard(errScripted), s.class)
	case s.act == actKill:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		<-ctx.Done() // the signal is on its way
	case s.act == actPanic:
		panic("as the script says")
	case s.act == actIgnore:
		<-time.After(timeout * 3 / 2) // its context ends before that, and it does not care
	}
	if own != nil {
		return own(ctx, r)
	}
	return nil
}
