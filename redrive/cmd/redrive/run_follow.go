package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

// reportEvery is how often a run prints its counts without a status line, as in the log of a job.
const reportEvery = time.Minute

// follow shows the progress of a run: a status line, and a line for each change. It calls begin
// before the first line.
func follow(t *tool, begin func(redrive.Event)) func(redrive.Event) {
	begun, state, waiting := false, redrive.State(""), ""
	reported := t.now()
	var speed speed
	return func(e redrive.Event) {
		if !begun {
			begun = true
			begin(e)
		}
		if e.Message != "" { // its other fields may be old
			t.screen.Say("%v", errors.New(withoutGuess(e.Message)))
			return
		}
		switch {
		// also when all is sent and the outcomes can't be read
		case e.Waiting != "" && e.Waiting != waiting:
			t.screen.Say("waiting: %s", e.Waiting)
		case e.State == state || e.State.Finished():
		case state == redrive.Waiting:
			t.screen.Say("continuing: %s", e.State)
		case state == redrive.Canary && e.State == redrive.Sending && e.Counts.Succeeded > 0:
			t.screen.Say("the canary succeeded; %s", stateWords[e.State])
		case e.State != redrive.Waiting:
			t.screen.Say("%s", stateWords[e.State])
		}
		if e.State != state || e.Waiting != "" {
			waiting = e.Waiting
		}
		state = e.State
		now := t.now()
		speed.add(e.Heartbeat, e.Counts.Sent) // the counts are as of then
		if !e.State.Finished() && !t.screen.HasStatus() && now.Sub(reported) >= reportEvery {
			reported = now
			t.screen.Say("%s, %s", phaseOf(e.Outcome, e.Rate, speed.perSecond, now), soFar(e.Counts, speed.perSecond))
		}
		t.screen.Status("%s: %s  %s", phaseOf(e.Outcome, e.Rate, speed.perSecond, now), soFar(e.Counts, speed.perSecond), output.Bar(e.Counts.Sent, e.Counts.Selected))
	}
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
	since     time.Time
	sent      int64 // until then
}

// over is how often a speed is measured.
const over = 2 * time.Second

func (s *speed) add(at time.Time, sent int64) {
	switch d := at.Sub(s.since); {
	case s.since.IsZero():
		s.since, s.sent = at, sent
	case d >= over:
		*s = speed{max(0, float64(sent-s.sent)/d.Seconds()), at, sent}
	}
}
