package redrive

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Pace sets the speed of a run and the limits at which it aborts itself. A zero field has its
// default. A negative field means none, except that a negative Burst is an error.
type Pace struct {
	// Rate is in records a second; 50 by default, without a limit when negative.
	Rate float64 `json:"rate"`
	// Burst is how many letters may be sent at once after a pause; a tenth of Rate by default, at
	// least 1. It does not lower the average rate: the run makes up for delays of its process of up
	// to 100 ms.
	Burst int `json:"burst"`
	// Canary is the number of letters that are sent first. The run awaits their outcomes before it
	// sends the others; 1 by default. For letters without a group on the source it awaits a Window
	// in which they do not fail. On another target than the source and its retry topics there is no
	// canary.
	Canary int `json:"canary"`
	// Tolerate is the number of failures that the run tolerates; none by default. The next failure
	// with a class of the run aborts it, whether of a letter or of new traffic.
	Tolerate int `json:"tolerate"`
	// TolerateShare is the share of failures, of any class, that the run tolerates among the last
	// 50 letters with an outcome. It is 0.1 by default, none when negative, and 1 tolerates all.
	// Among fewer letters as many may fail as among 50. A letter counts once, when its group passes
	// it for the first time; one without a group when it fails, or after a Window in which it did
	// not. The share aborts nothing before more than Tolerate letters failed.
	TolerateShare float64 `json:"tolerateShare,omitempty"`
	// Ramp is the time from a tenth of Rate to all of it, after the canary; 30 s by default.
	Ramp time.Duration `json:"ramp"`
	// Window is how long the run watches for failures after its last letter, and for how long
	// failures of new traffic count; 30 s by default.
	Window time.Duration `json:"window"`
	// MaxLag bounds the letters that were sent and are due and unfinished on a retry topic. On
	// another target it bounds the group's lag. At the bound the run sends nothing. The default is
	// Rate × 10 s, at least 1,000.
	MaxLag int64 `json:"maxLag"`
}

const (
	defaultWindow = 30 * time.Second
	defaultShare  = 0.1
)

// canaryPatience is how long the run awaits the canary's outcome before it reports that it waits.
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

// over returns the pace of a run that continues. The fields that are set replace those of its
// former pace. A new Rate has its own defaults of Burst and MaxLag.
func (p Pace) over(was Pace) Pace {
	now := p.withDefaults()
	if p.Rate == 0 {
		now.Rate = was.Rate
		keep(&now.Burst, p.Burst, was.Burst)
		keep(&now.MaxLag, p.MaxLag, was.MaxLag)
	}
	keep(&now.Canary, p.Canary, was.Canary)
	keep(&now.Tolerate, p.Tolerate, was.Tolerate)
	keep(&now.TolerateShare, p.TolerateShare, was.TolerateShare)
	keep(&now.Ramp, p.Ramp, was.Ramp)
	keep(&now.Window, p.Window, was.Window)
	return now
}

// keep gives a field that is not set its former value.
func keep[T int | int64 | float64 | time.Duration](field *T, given, was T) {
	if given == 0 {
		*field = was
	}
}

// PaceChange is a field of a pace that was replaced. Field is its name in JSON, From and To are its
// values: numbers, durations such as 30s, or none.
type PaceChange struct {
	Field string `json:"field"`
	From  string `json:"from"`
	To    string `json:"to"`
}

// changes returns what differs from a former pace.
func (p Pace) changes(was Pace) (all []PaceChange) {
	compare := func(field string, from, to float64, text func(float64) string) {
		if from == to {
			return
		}
		say := func(v float64) string {
			if v < 0 {
				return "none"
			}
			return text(v)
		}
		all = append(all, PaceChange{field, say(from), say(to)})
	}
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	duration := func(v float64) string { return time.Duration(v).String() }
	compare("rate", was.Rate, p.Rate, number)
	compare("burst", float64(was.Burst), float64(p.Burst), number)
	compare("canary", float64(was.Canary), float64(p.Canary), number)
	compare("tolerate", float64(was.Tolerate), float64(p.Tolerate), number)
	compare("tolerateShare", was.TolerateShare, p.TolerateShare, number)
	compare("ramp", float64(was.Ramp), float64(p.Ramp), duration)
	compare("window", float64(was.Window), float64(p.Window), duration)
	compare("maxLag", float64(was.MaxLag), float64(p.MaxLag), number)
	return all
}

func (p Pace) validate() error {
	if math.IsNaN(p.Rate) || math.IsInf(p.Rate, 0) {
		return errors.New("the rate is not a finite number")
	}
	if math.IsNaN(p.TolerateShare) || p.TolerateShare > 1 {
		return fmt.Errorf("the tolerated share of failures is %g: it may be 1 at most", p.TolerateShare)
	}
	if p.Burst < 0 {
		return fmt.Errorf("the burst is %d: it must be 1 at least", p.Burst)
	}
	return nil
}

// rateAt returns the rate at a time since the ramp began.
func (p *Pace) rateAt(since time.Duration) float64 {
	if p.Rate < 0 || p.Ramp <= 0 || since >= p.Ramp {
		return p.Rate
	}
	return p.Rate * (0.1 + 0.9*float64(max(since, 0))/float64(p.Ramp))
}
