package main

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/redrive"
)

func TestTolerance_IsANumberAShareOrBoth(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		number int
		share  float64
		ok     bool
	}{
		"0,10%": {-1, 0.1, true},
		"3":     {3, 0, true}, // the engine's default
		"25%":   {0, 0.25, true},
		"25%,3": {3, 0.25, true},
		"0%":    {0, -1, true}, // the engine's none
		"100%":  {0, 1, true},
		"":      {}, "3,4": {}, "1%,2%": {}, "-1": {}, "101%": {}, "-1%": {}, "NaN%": {}, "%": {}, "x": {}, "1.5": {}, "3,": {},
	} {
		number, share, err := tolerance(text)
		if (err == nil) != want.ok || number != want.number || share != want.share {
			t.Errorf("%q: %d, %g, %v; want %+v", text, number, share, err, want)
		}
	}
	prints(t, (invocation{}).run(t, "plan", "orders.dlq", "--tolerate", "many"), exitUsage, "", `--tolerate: "many" is not a number of failures, a share of them or both, such as 3, 25% or 3,25%`)
}

func TestCheckRate_RefusesWhatMakesNoSense(t *testing.T) {
	t.Parallel()
	for rate, fits := range map[string]bool{
		"NaN": false, "Inf": false, "-Inf": false, "1e-300": false, "1e300": false, "-1": false, "0": true, "0.01": true, "1e6": true,
	} {
		got := invocation{}.run(t, "plan", "orders.dlq", "--rate="+rate)
		if got.code != exitUsage || strings.Contains(got.stderr, "--rate") == fits {
			t.Errorf("%s: %+v", rate, got)
		}
	}
	p := redrive.Plan{Letters: math.MaxInt64}
	if d := p.Duration(redrive.Pace{Rate: 1e-300}); d != math.MaxInt64 {
		t.Errorf("a run of ages takes %s", d)
	}
	if d := p.Duration(redrive.Pace{Rate: 1e-300, Ramp: time.Hour}); d != math.MaxInt64 {
		t.Errorf("a run of ages takes %s", d)
	}
}
