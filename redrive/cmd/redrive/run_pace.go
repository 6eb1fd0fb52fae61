package main

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/sidingkafka/siding/redrive"
)

// paceFlags say how fast a run goes and when it stops by itself.
type paceFlags struct {
	rate         float64
	burst        int
	canary       int
	tolerate     string
	ramp, window time.Duration
	maxLag       int64

	set *pflag.FlagSet // of these flags
}

func addPace(set *pflag.FlagSet) *paceFlags {
	p := &paceFlags{set: set}
	set.Float64Var(&p.rate, "rate", 50, "`records` a second; 0 for no limit")
	set.IntVar(&p.burst, "burst", 0, "`records` that the run may send at once after a pause (default a tenth of the rate)")
	set.IntVar(&p.canary, "canary", 1, "`records` to send first; the run waits for their outcome before it sends the others; 0 for none")
	set.StringVar(&p.tolerate, "tolerate", "0,10%", "`failures` that do not abort the run: a number of those with a class of the run, a share of the last 50 records with any class, or both")
	set.DurationVar(&p.ramp, "ramp", 30*time.Second, "`time` in which the run rises from a tenth of the rate to all of it; 0 for none")
	set.DurationVar(&p.window, "window", 30*time.Second, "`time` for which the run watches for failures after the last record; 0 for none")
	set.Int64Var(&p.maxLag, "max-lag", 0, "`records` that may be due and unfinished before the run waits (default what the rate gives in 10s, at least 1000); -1 for any number")
	return p
}

// addResumePace gives resume the flags of the pace. A flag that is not given leaves the run as it
// is. There is none for the canary, which may have been sent.
func addResumePace(set *pflag.FlagSet) *paceFlags {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	all.SortFlags = false
	p := addPace(all)
	all.VisitAll(func(f *pflag.Flag) {
		if f.Name != "canary" {
			f.Usage = defaultIn.ReplaceAllString(f.Usage, "") + " (default as before)"
			f.DefValue = ""
			set.AddFlag(f)
		}
	})
	return p
}

var defaultIn = regexp.MustCompile(` \(default [^)]*\)`)

// changes is the pace of the flags that are given; package redrive keeps what is zero.
func (p *paceFlags) changes() (redrive.Pace, error) {
	all, err := p.pace()
	var given redrive.Pace
	for name, take := range map[string]func(){
		"rate": func() { given.Rate = all.Rate }, "burst": func() { given.Burst = all.Burst }, "ramp": func() { given.Ramp = all.Ramp },
		"window": func() { given.Window = all.Window }, "max-lag": func() { given.MaxLag = all.MaxLag },
		"tolerate": func() { given.Tolerate, given.TolerateShare = all.Tolerate, all.TolerateShare },
	} {
		if p.set.Changed(name) {
			take()
		}
	}
	return given, err
}

// The usable rates: from one record a day to more than any broker takes.
const (
	leastRate = 1.0 / (24 * 60 * 60)
	mostRate  = 1e9
)

func checkRate(rate float64) error {
	if math.IsNaN(rate) || rate > mostRate || rate > 0 && rate < leastRate {
		return fmt.Errorf("--rate: %g is not a usable number of records a second; 0 is no limit", rate)
	}
	return nil
}

// tolerance reads a number of failures, a share, or both: 3, 25% or 3,25%. What is omitted is zero,
// and what is none is negative.
func tolerance(text string) (number int, share float64, err error) {
	wrong := fmt.Errorf("--tolerate: %q is not a number of failures, a share of them or both, such as 3, 25%% or 3,25%%", text)
	var numbers, shares int
	for _, part := range strings.Split(text, ",") {
		percent, is := strings.CutSuffix(part, "%")
		if !is {
			numbers++
			if number, err = strconv.Atoi(part); err != nil || number < 0 {
				return 0, 0, wrong
			}
			number = orNone(number)
			continue
		}
		shares++
		share, err = strconv.ParseFloat(percent, 64)
		if err != nil || !(share >= 0 && share <= 100) {
			return 0, 0, wrong
		}
		share = orNone(share / 100)
	}
	if numbers > 1 || shares > 1 {
		return 0, 0, wrong
	}
	return number, share, nil
}

func (p *paceFlags) pace() (redrive.Pace, error) {
	var errs []error
	if err := checkRate(p.rate); err != nil {
		errs = append(errs, err)
	}
	for name, bad := range map[string]bool{
		"rate": p.rate < 0, "burst": p.burst < 0, "canary": p.canary < 0, "ramp": p.ramp < 0, "window": p.window < 0, "max-lag": p.maxLag < -1,
	} {
		if bad {
			errs = append(errs, fmt.Errorf("--%s is negative", name))
		}
	}
	pace := redrive.Pace{Rate: orNone(p.rate), Burst: p.burst, Canary: orNone(p.canary), Ramp: orNone(p.ramp), Window: orNone(p.window), MaxLag: p.maxLag}
	var err error
	if pace.Tolerate, pace.TolerateShare, err = tolerance(p.tolerate); err != nil {
		errs = append(errs, err)
	}
	return pace, errors.Join(errs...)
}
