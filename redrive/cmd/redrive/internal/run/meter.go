package run

import (
	"fmt"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

// A Meter says how far a run is, by what its process recorded. The zero value is ready.
type Meter struct {
	run   string
	speed speed
	clock ownersClock
}

// Line is a run's progress in words. bad reports that it failed, or has no process.
func (m *Meter) Line(o redrive.Outcome, now time.Time) (text string, bad bool) {
	if name := o.Topic + "/" + o.ID; name != m.run {
		*m = Meter{run: name}
	}
	c := o.Counts
	if o.State.Finished() {
		text = fmt.Sprintf("%s: %d failed again, %d sent, %d succeeded, %d pending", o.State, c.Failed, c.Sent, c.Succeeded, c.Pending)
		return text, o.State == redrive.Aborted || c.Failed > 0
	}
	m.speed.add(o)
	phase := phaseOf(o, m.speed.slow(), m.clock.at(o.Heartbeat, now))
	since, gone := silent(o, now)
	if gone && o.Stopped.IsZero() {
		phase = fmt.Sprintf("unfinished, without a heartbeat for %s", output.Duration(since.Round(time.Second)))
	}
	return phase + ": " + soFar(c, m.speed.perSecond), gone || c.Failed+c.Retrying > 0
}
