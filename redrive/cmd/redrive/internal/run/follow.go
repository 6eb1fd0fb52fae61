package run

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

// reportEvery is how often a run prints its counts without a status line, as in the log of a job.
const reportEvery = time.Minute

// follow shows the progress of a run: a status line, and a line for each change. It calls begin
// before the first line.
func follow(t *cli.Tool, begin func(redrive.Event)) func(redrive.Event) {
	v := newView(t, begin)
	return func(e redrive.Event) {
		if e.Message == "" { // with one, the other fields may be old
			v.speed.add(e.Outcome)
		}
		v.show(e)
	}
}

// view is what the screen shows of a run.
type view struct {
	*cli.Tool
	first func(redrive.Event) // is called before the first line

	begun    bool
	state    redrive.State
	waiting  string
	reported time.Time
	speed    speed
	clock    ownersClock
}

func newView(t *cli.Tool, begin func(redrive.Event)) *view {
	return &view{Tool: t, first: begin, reported: t.Now()}
}

func (v *view) show(e redrive.Event) {
	if !v.begun {
		v.begun = true
		v.first(e)
	}
	if e.Message != "" {
		v.Screen.Print("%v", errors.New(cli.WithoutGuess(e.Message)))
		return
	}
	switch {
	// also when all is sent and the outcomes can't be read
	case e.Waiting != "" && e.Waiting != v.waiting:
		v.Screen.Print("waiting: %s", e.Waiting)
	case e.State == v.state || e.State.Finished():
	case v.state == redrive.Waiting:
		v.Screen.Print("continuing: %s", e.State)
	case v.state == redrive.Canary && e.State == redrive.Sending && e.Counts.Succeeded > 0:
		v.Screen.Print("the canary succeeded; %s", stateWords[e.State])
	case e.State != redrive.Waiting:
		v.Screen.Print("%s", stateWords[e.State])
	}
	if e.State != v.state || e.Waiting != "" {
		v.waiting = e.Waiting
	}
	v.state = e.State
	now := v.Now()
	phase := phaseOf(e.Outcome, v.speed.slow(), v.clock.at(e.Heartbeat, now))
	if !e.State.Finished() && !v.Screen.HasStatus() && now.Sub(v.reported) >= reportEvery {
		v.reported = now
		v.Screen.Print("%s, %s", phase, soFar(e.Counts, v.speed.perSecond))
	}
	v.Screen.Status("%s: %s  %s", phase, soFar(e.Counts, v.speed.perSecond), output.Bar(e.Counts.Sent, e.Counts.Selected))
}

var stateWords = map[redrive.State]string{
	redrive.Canary:   "canary: sending the first records and waiting for their outcome",
	redrive.Sending:  "sending",
	redrive.Watching: "all is sent; watching for failures until the window ends",
}

func soFar(c redrive.Counts, perSecond float64) string {
	// what matters most comes first: a narrow terminal cuts the end off
	text := fmt.Sprintf("%d failed again, %d sent at %.0f/s, %d succeeded, %d pending", c.Failed+c.Retrying, c.Sent, perSecond, c.Succeeded, c.Pending-c.Retrying)
	if c.Unfollowed > 0 {
		text += fmt.Sprintf(", %d not followed", c.Unfollowed)
	}
	return text
}

// A speed is the records a second over the last whole interval.
type speed struct {
	perSecond float64
	limit     float64 // when that interval began; zero unless the run was sending then

	since time.Time // the next interval begins
	sent  int64     // until then
	from  float64   // its limit
}

// over is how often a speed is measured.
const over = 2 * time.Second

// add takes the counts of a run, which are as of its heartbeat.
func (s *speed) add(o redrive.Outcome) {
	if d := o.Heartbeat.Sub(s.since); !s.since.IsZero() {
		if d < over {
			return
		}
		s.perSecond, s.limit = max(0, float64(o.Counts.Sent-s.sent)/d.Seconds()), s.from
	}
	if s.since, s.sent, s.from = o.Heartbeat, o.Counts.Sent, 0; o.State == redrive.Sending {
		s.from = o.RateAt(o.Heartbeat)
	}
}

// slow is the speed of a run that stays behind its limit, or has none; zero of one that keeps up,
// and before that is known. The limit at the beginning of the interval decides, since a ramp raises
// it.
func (s *speed) slow() float64 {
	if s.limit < 0 || s.perSecond < 0.8*s.limit {
		return s.perSecond
	}
	return 0
}

// ownersClock is the clock of the process that owns a run: this machine's clock may differ.
type ownersClock struct {
	beat, read time.Time // the last heartbeat, and when it came here
}

func (c *ownersClock) at(heartbeat, now time.Time) time.Time {
	if !heartbeat.Equal(c.beat) || c.read.IsZero() {
		c.beat, c.read = heartbeat, now
	}
	return c.beat.Add(now.Sub(c.read))
}

// lettersLeft is how many letters of a run are still to be sent.
func lettersLeft(c redrive.Counts) int64 {
	left := c.Selected - c.Sent
	for _, n := range c.Skipped {
		left -= n
	}
	return max(left, 0)
}

// sendingLeft estimates how long a run sends on, without waits. limit is the rate to which the ramp
// has risen. slow is the measured speed of a run that has no limit, or stays behind its limit, and
// zero otherwise. The time is unknown where nothing is known of the speed.
func sendingLeft(o redrive.Outcome, limit, slow float64) (left time.Duration, known bool) {
	letters, rate := float64(lettersLeft(o.Counts)), o.Pace.Rate
	if rate <= 0 || limit >= rate && slow > 0 {
		if slow <= 0 {
			return 0, letters == 0
		}
		return seconds(letters / slow), true
	}
	// the rest of the ramp, over which the rate grows evenly
	limit = min(max(limit, 0), rate)
	ramp := o.Pace.Ramp.Seconds() * (rate - limit) / (0.9 * rate)
	inRamp := ramp * (limit + rate) / 2
	if letters >= inRamp {
		return seconds(ramp + (letters-inRamp)/rate), true
	}
	// letters = limit × t + growth × t² / 2
	growth := (rate - limit) / ramp
	return seconds((math.Sqrt(limit*limit+2*growth*letters) - limit) / growth), true
}

// seconds is a duration in whole seconds, or the longest that there is.
func seconds(s float64) time.Duration {
	if ns := s * float64(time.Second); ns < math.MaxInt64 {
		return time.Duration(ns).Round(time.Second)
	}
	return math.MaxInt64
}

// timeLeft is how long the phase of a run goes on: until all is sent, or until the window ends. It
// is unknown for a run that waits for something or was stopped. slow is as in sendingLeft, and now
// is by the clock of the run's owner.
func timeLeft(o redrive.Outcome, slow float64, now time.Time) (left time.Duration, known bool) {
	switch {
	case !o.Stopped.IsZero():
	case o.State == redrive.Sending:
		left, known = sendingLeft(o, o.RateAt(o.Heartbeat), slow)
		// the counts are as of then
		return max(0, left-now.Sub(o.Heartbeat).Round(time.Second)), known
	case o.State == redrive.Watching:
		left = o.WindowEnds.Sub(now).Round(time.Second)
		return left, left > 0 && o.Waiting == ""
	}
	return 0, false
}

// phaseOf is a run's state and the time that is left of it: "sending (20s left)".
func phaseOf(o redrive.Outcome, slow float64, now time.Time) string {
	if left, known := timeLeft(o, slow, now); known && left > 0 {
		return fmt.Sprintf("%s (%s left)", o.State, output.Duration(left))
	}
	if !o.Stopped.IsZero() {
		return "stopped"
	}
	return string(o.State)
}
