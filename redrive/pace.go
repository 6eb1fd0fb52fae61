package redrive

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Pace says how fast a run goes, and when it stops by itself. The zero value has the
// defaults; a negative field means none, but for Burst, where it is an error.
type Pace struct {
	// Rate is in records a second; 50 by default, without a limit when negative.
	Rate float64 `json:"rate"`
	// Burst is how many may be sent at once after a pause, at least one, so a negative one is an
	// error; a tenth of Rate by default. It takes nothing off the rate: what the process is late
	// for, up to 100 ms, it makes up for.
	Burst int `json:"burst"`
	// Canary is how many are sent first, whose outcome is awaited before the others are; 1 by
	// default.
	Canary int `json:"canary"`
	// Tolerate is how many failures are no reason to abort; none by default. Beyond it a failure
	// with a class of the run is one at once, of a letter or of new traffic.
	Tolerate int `json:"tolerate"`
	// TolerateShare is which share of the last 50 letters with an outcome may have failed, with any
	// class, before the run aborts; 0.1 by default, none when negative, any share at 1. Of fewer
	// letters as many may fail as of 50. A letter counts once, when its group has passed it for the
	// first time. The share is no reason to abort before more than Tolerate letters failed.
	TolerateShare float64 `json:"tolerateShare,omitempty"`
	// Ramp is how long it takes from a tenth of Rate to all of it, after the canary; 30 s by
	// default.
	Ramp time.Duration `json:"ramp"`
	// Window is how long failures are looked for after the last record was sent, and how long new
	// traffic's count; 30 s by default.
	Window time.Duration `json:"window"`
	// MaxLag is how many records that were sent may be due and unfinished on a retry topic, or in
	// the group's lag on another target; nothing is sent meanwhile. By default it is what Rate
	// gives in ten seconds, at least 1,000.
	MaxLag int64 `json:"maxLag"`
}

const (
	defaultWindow = 30 * time.Second
	defaultShare  = 0.1
)

// canaryPatience is how long the canary's outcome is awaited before the run says that it waits.
const canaryPatience = 5 * time.Minute

func (p Pace) withDefaults() Pace {
	set(&p.Rate, 50)
	set(&p.Burst, max(1, int(p.Rate/10)))
	set(&p.Canary, 1)
	set(&p.TolerateShare, defaultShare)
	set(&p.Ramp, 30*time.Second)
	set(&p.Window, defaultWindow)
	set(&p.MaxLag, max(1000, int64(math.Min(10*p.Rate, 1e12))))
	p.Canary, p.Tolerate, p.Ramp, p.Window = max(p.Canary, 0), max(p.Tolerate, 0), max(p.Ramp, 0), max(p.Window, 0)
	return p
}

// set gives a field its default.
func set[T int | int64 | float64 | time.Duration](field *T, to T) {
	if *field == 0 {
		*field = to
	}
}

func (p Pace) validate() error {
	if math.IsNaN(p.Rate) || math.IsInf(p.Rate, 0) {
		return errors.New("the rate is no number")
	}
	if math.IsNaN(p.TolerateShare) || p.TolerateShare > 1 {
		return fmt.Errorf("the share of failures that is tolerated is %g: it is 1 at most", p.TolerateShare)
	}
	if p.Burst < 0 {
		return fmt.Errorf("the burst is %d: it takes one at least", p.Burst)
	}
	return nil
}

// rateAt is the rate at a time since the ramp began.
func (p *Pace) rateAt(since time.Duration) float64 {
	if p.Rate < 0 || p.Ramp <= 0 || since >= p.Ramp {
		return p.Rate
	}
	return p.Rate * (0.1 + 0.9*float64(max(since, 0))/float64(p.Ramp))
}
