package run_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/demo"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

func TestCheckRate_RefusesWhatMakesNoSense(t *testing.T) {
	t.Parallel()
	for rate, fits := range map[string]bool{
		"NaN": false, "Inf": false, "-Inf": false, "1e-300": false, "1e300": false, "-1": false, "0": true, "0.01": true, "1e6": true,
	} {
		got := roottest.Invocation{}.Run(t, "plan", "orders.dlq", "--rate="+rate)
		if got.Code != cli.ExitUsage || strings.Contains(got.Stderr, "--rate") == fits {
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

// With 0 a run would send nothing. That it is also what the engine takes for its default made it
// mean something else, without a word.
func TestPace_RefusesABoundOfZero(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"plan orders.dlq", "run orders.dlq", "resume orders.dlq/r-1"} {
		for flag, want := range map[string]string{
			"--burst=0":   "--burst: with 0 the run would send nothing: give 1 or more, or omit it",
			"--max-lag=0": "--max-lag: with 0 the run would always wait: give 1 or more, or -1 for any number",
		} {
			roottest.Prints(t, (roottest.Invocation{}).Run(t, append(strings.Fields(verb), flag)...), cli.ExitUsage, "", want, verb)
		}
		for _, flag := range []string{"--burst=1", "--max-lag=1", "--max-lag=-1"} {
			if got := (roottest.Invocation{}).Run(t, append(strings.Fields(verb), flag)...); strings.Contains(got.Stderr, strings.Split(flag, "=")[0]) {
				t.Errorf("%s %s: %+v", verb, flag, got)
			}
		}
	}
}

func TestPace_ExplainsWhatIsNoTolerance(t *testing.T) {
	t.Parallel()
	roottest.Prints(t, (roottest.Invocation{}).Run(t, "plan", "orders.dlq", "--tolerate", "many"), cli.ExitUsage, "", `--tolerate: "many" is not a number of failures, a share of them or both, such as 3, 25% or 3,25%`)
}

// At night no operator knows what a group can bear; a share of what it does now is safe.
func TestPaceOf_IsAShareOfTheTraffic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := roottest.FailedNight(t, demo.Bug{Class: "tax", Message: "no rate", Records: 20})
		n.Fix("tax")
		idle := n.Play(`
<!-- night: wait 1m -->
<!-- night: exits 4 -->
    $ redrive run orders.dlq --yes --rate 50%
`)
		if !strings.Contains(idle, "group billing finished no record of orders within 10s: give a rate in records a second") {
			t.Errorf("without traffic: %s", idle)
		}
		ctx, stop := context.WithCancel(t.Context())
		var producer sync.WaitGroup
		producer.Go(func() {
			for made := 0; ctx.Err() == nil; made++ {
				n.Producer.Produce(context.Background(), &kgo.Record{Topic: "orders", Key: fmt.Appendf(nil, "new-%d", made), Value: []byte("fine")}, nil)
				time.Sleep(50 * time.Millisecond)
			}
		})
		played := n.Play(`
    $ redrive plan orders.dlq --rate 50%
    $ redrive run orders.dlq --yes --rate 50% --ramp 0 --window 1s -o json
`)
		stop()
		producer.Wait()
		var traffic, rate float64
		_, words, _ := strings.Cut(played, "billing finishes ")
		if _, err := fmt.Sscanf(words, "%g records a second now; 50%% of it is a rate of %g", &traffic, &rate); err != nil || traffic < 15 || traffic > 25 || math.Abs(rate-traffic/2) > 0.1 {
			t.Errorf("of 20 records a second it finds %g, and takes %g, %v: %s", traffic, rate, err, played)
		}
		_, ran, _ := strings.Cut(played, "    {")
		ran, _, _ = strings.Cut(ran, "\n")
		if o := roottest.OutcomeOf(t, "{"+ran); o.Rate < 7 || o.Rate > 13 || o.Succeeded != 20 {
			t.Errorf("the run: %+v", o)
		}
	})
	for _, share := range []string{"0%", "101%", "-5%", "%", "x%", "NaN%"} {
		roottest.Prints(t, roottest.Invocation{}.Run(t, "run", "orders.dlq", "--rate="+share), cli.ExitUsage, "", `--rate: "`+share+`" is not a number of records a second, nor a share`)
	}
	roottest.Prints(t, roottest.Invocation{}.Run(t, "resume", "orders.dlq/r-1", "--rate=10%"), cli.ExitUsage, "", "a share of the traffic is for a new run: give resume a number")
}
