package run

import (
	"fmt"
	"math"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

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
