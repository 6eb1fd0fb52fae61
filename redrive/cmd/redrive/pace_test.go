package main

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/redrive"
)

func TestARateThatMakesNoSenseIsAnErrorOfUsage(t *testing.T) {
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
