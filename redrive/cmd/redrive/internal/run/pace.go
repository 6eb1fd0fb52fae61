package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
)

// paceFlags are how fast a run goes and when it stops by itself.
type paceFlags struct {
	rate         rate
	burst        int
	canary       int
	tolerate     string
	ramp, window time.Duration
	maxLag       int64

	set *pflag.FlagSet // of these flags
}

// ofTraffic is the part of the help of --rate that is for new runs.
const ofTraffic = ", or a share of what the group finishes on the source now, such as 10%"

func addPace(set *pflag.FlagSet) *paceFlags {
	p := &paceFlags{set: set}
	p.rate = rate{perSecond: 50}
	set.Var(&p.rate, "rate", "`records` a second"+ofTraffic+"; 0 for no limit")
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
			f.Usage = strings.Replace(defaultIn.ReplaceAllString(f.Usage, ""), ofTraffic, "", 1) + " (default as before)"
			if f.DefValue = ""; f.Value.Type() != "string" {
				f.DefValue = "0" // what help takes for none
			}
			set.AddFlag(f)
		}
	})
	return p
}

var defaultIn = regexp.MustCompile(` \(default [^)]*\)`)

// changes is the pace of the flags that are given; package redrive keeps what is zero.
func (p *paceFlags) changes() (redrive.Pace, error) {
	all, err := p.pace()
	if p.rate.share > 0 {
		err = errors.Join(err, errors.New("--rate: a share of the traffic is for a new run: give resume a number of records a second"))
	}
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

// given returns the flags that are given, for a command that goes at the same pace: a stored plan
// has none.
func (p *paceFlags) given() (text string) {
	p.set.VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			text += " --" + f.Name + "=" + f.Value.String()
		}
	})
	return text
}

// The usable rates: from one record a day to more than any broker takes.
const (
	leastRate = 1.0 / (24 * 60 * 60)
	mostRate  = 1e9
)

// A rate is a number of records a second, or a share of the traffic of a run's groups.
type rate struct{ perSecond, share float64 }

// Set implements pflag.Value.
func (r *rate) Set(text string) (err error) {
	percent, is := strings.CutSuffix(text, "%")
	if !is {
		*r = rate{}
		r.perSecond, err = strconv.ParseFloat(text, 64)
		return err
	}
	share, err := strconv.ParseFloat(percent, 64)
	if err != nil || !(share > 0 && share <= 100) {
		return errors.New("a share is more than 0% and at most 100%")
	}
	*r = rate{share: share / 100}
	return nil
}

// String implements pflag.Value.
func (r *rate) String() string {
	if r.share > 0 {
		return strconv.FormatFloat(r.share*100, 'g', -1, 64) + "%"
	}
	return strconv.FormatFloat(r.perSecond, 'g', -1, 64)
}

// Type implements pflag.Value.
func (r *rate) Type() string { return "rate" }

// paceOf is the pace of a plan. A share of the traffic of its groups becomes a rate, which takes
// some seconds of measuring.
func (p *paceFlags) paceOf(ctx context.Context, t *cli.Tool, r *redrive.Redriver, plan *redrive.Plan, pace redrive.Pace) (redrive.Pace, error) {
	if p.rate.share == 0 {
		return pace, nil
	}
	groups := strings.Join(slices.Sorted(maps.Keys(plan.ByGroup)), ", ")
	t.Screen.Status("measuring the traffic of %s for ten seconds …", groups)
	traffic, err := r.Traffic(ctx, plan, 0)
	if err != nil {
		return pace, err
	}
	pace.Rate = max(rounded(traffic*p.rate.share), leastRate)
	t.Screen.Print("%s finishes %g records a second now; %s of it is a rate of %g", groups, rounded(traffic), &p.rate, pace.Rate)
	return pace, nil
}

// rounded is a measured rate to three digits: it is no more exact.
func rounded(rate float64) float64 {
	rate, err := strconv.ParseFloat(strconv.FormatFloat(rate, 'e', 2, 64), 64)
	if err != nil {
		panic(err) // it was a number
	}
	return rate
}

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
	if err := checkRate(p.rate.perSecond); err != nil {
		errs = append(errs, err)
	}
	for name, bad := range map[string]bool{
		"rate": p.rate.perSecond < 0, "burst": p.burst < 0, "canary": p.canary < 0, "ramp": p.ramp < 0, "window": p.window < 0, "max-lag": p.maxLag < -1,
	} {
		if bad {
			errs = append(errs, fmt.Errorf("--%s is negative", name))
		}
	}
	// Zero is the default of these two. A user who gives it means none, and with none the run would
	// send nothing.
	if p.set.Changed("burst") && p.burst == 0 {
		errs = append(errs, errors.New("--burst: with 0 the run would send nothing: give 1 or more, or omit it"))
	}
	if p.set.Changed("max-lag") && p.maxLag == 0 {
		errs = append(errs, errors.New("--max-lag: with 0 the run would always wait: give 1 or more, or -1 for any number"))
	}
	pace := redrive.Pace{Rate: orNone(p.rate.perSecond), Burst: p.burst, Canary: orNone(p.canary), Ramp: orNone(p.ramp), Window: orNone(p.window), MaxLag: p.maxLag}
	var err error
	if pace.Tolerate, pace.TolerateShare, err = tolerance(p.tolerate); err != nil {
		errs = append(errs, err)
	}
	return pace, errors.Join(errs...)
}

// orNone is a number for package redrive, where zero means the default and a negative number means
// none.
func orNone[N int | float64 | time.Duration](n N) N {
	if n == 0 {
		return -1
	}
	return n
}
