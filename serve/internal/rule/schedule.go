package rule

import (
	"fmt"
	"time"

	"github.com/sidingkafka/siding/serve/internal/duration"
)

// Schedule is what the decisions of a rule depend on.
type Schedule struct {
	// CoolDown is how long no letter of the rule must have failed before they are redriven.
	CoolDown time.Duration
	// Times are the times of day at which the rule may begin a run; none for any.
	Times []Times
	// Wait is the first wait of an open circuit; each further one is twice as long, up to MaxWait.
	Wait, MaxWait time.Duration
}

// Facts are what is known of a topic at a moment.
type Facts struct {
	Open       int64     // letters that the rule selects
	LastFailed time.Time // when the last of all letters of their classes failed; zero if none did
	Unfinished string    // a run of the topic that is not finished; empty if there is none
	Manual     bool      // no rule may redrive the topic
	Paused     bool      // an operator paused the rule
	Held       string    // which group holds the source of its letters back; empty if none does
}

// Action is what a rule does.
type Action uint8

// The actions.
const (
	Nothing Action = iota
	Redrive        // all letters that the rule selects
	Canary         // one of them
)

// State is the state of a rule on a topic. The zero value is a closed circuit.
type State struct {
	V int `json:"v"`
	// Opened is when the circuit opened last; zero while it is closed. Until is when a letter may
	// be tried, and Wait how long that is.
	Opened time.Time     `json:"opened,omitzero"`
	Until  time.Time     `json:"until,omitzero"`
	Wait   time.Duration `json:"wait,omitempty"`
	// Why is the cause of the run that opened it.
	Why string `json:"why,omitempty"`
	// Run is the last run whose end the state has.
	Run string `json:"run,omitempty"`
}

// IsOpen reports whether the circuit is open.
func (s *State) IsOpen() bool { return !s.Opened.IsZero() }

// Decide returns what the rule does now, and why.
func (c *Schedule) Decide(now time.Time, s *State, f Facts) (do Action, why string) {
	switch {
	case f.Manual:
		return Nothing, "only operators redrive this topic"
	case f.Paused:
		return Nothing, "the rule is paused"
	case f.Open == 0:
		return Nothing, "no open letter fits"
	case f.Unfinished != "":
		return Nothing, fmt.Sprintf("run %s is not finished", f.Unfinished)
	case f.Held != "":
		return Nothing, f.Held
	case !c.inTime(now):
		return Nothing, "it is none of the rule's times"
	case s.IsOpen() && now.Before(s.Until):
		return Nothing, fmt.Sprintf("the circuit is open until %s, since %s", s.Until.UTC().Format(time.RFC3339), s.Why)
	case now.Before(f.LastFailed.Add(c.CoolDown)):
		return Nothing, fmt.Sprintf("the last failure was %s ago, and has to be %s ago", duration.Short(now.Sub(f.LastFailed).Round(time.Second)), duration.Short(c.CoolDown))
	case s.IsOpen():
		return Canary, fmt.Sprintf("the circuit was open for %s: one letter is tried", duration.Short(s.Wait))
	}
	if c.CoolDown == 0 {
		return Redrive, "the delay of the letters is over"
	}
	return Redrive, fmt.Sprintf("no letter has failed for %s", duration.Short(c.CoolDown))
}

// Ended returns the state after a run: cause is why it aborted, or empty if it did not.
func (c *Schedule) Ended(now time.Time, s State, cause string) State {
	if cause == "" {
		return State{V: 1}
	}
	wait := c.Wait
	if s.IsOpen() {
		wait = min(2*s.Wait, c.MaxWait)
	}
	return State{V: 1, Opened: now, Until: now.Add(wait), Wait: wait, Why: cause}
}

func (c *Schedule) inTime(now time.Time) bool {
	for _, t := range c.Times {
		if t.Has(now) {
			return true
		}
	}
	return len(c.Times) == 0
}
