package run

import (
	"math"
	"testing"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
)

// The time left agrees with what plan shows before the run, and shrinks as the run goes on.
func TestSendingLeft_AgreesWithThePlan(t *testing.T) {
	t.Parallel()
	pace := redrive.Pace{Rate: 50, Ramp: 30 * time.Second}
	for _, letters := range []int64{10, 400, 825, 22_000} {
		o := redrive.Outcome{Pace: pace, Counts: redrive.Counts{Selected: letters}}
		want := (&redrive.Plan{Letters: letters}).Duration(pace).Round(time.Second)
		if got, known := sendingLeft(o, 5, 0); !known || got != want {
			t.Errorf("%d letters at the beginning of the ramp: %v, %v; want %v", letters, got, known, want)
		}
	}
	for _, c := range []struct {
		name           string
		rate           float64
		selected, sent int64
		skipped        int64
		limit, slow    float64
		want           time.Duration
		known          bool
	}{
		{"after the ramp", 50, 1100, 100, 0, 50, 0, 20 * time.Second, true},
		{"letters that are skipped", 50, 1100, 100, 500, 50, 0, 10 * time.Second, true},
		{"a group that is slower", 50, 1100, 100, 0, 50, 10, 100 * time.Second, true},
		{"in the ramp, whatever was measured", 50, 1000, 0, 0, 27.5, 1, 23 * time.Second, true},
		{"no limit", -1, 1100, 100, 0, -1, 500, 2 * time.Second, true},
		{"no limit, nothing measured", -1, 1100, 100, 0, -1, 0, 0, false},
		{"nothing is left", 50, 10, 10, 0, 50, 0, 0, true},
		{"more was sent than selected", 50, 10, 12, 0, 50, 0, 0, true},
		{"ages", 1e-300, math.MaxInt64, 0, 0, 1e-300, 0, math.MaxInt64, true},
	} {
		o := redrive.Outcome{Pace: redrive.Pace{Rate: c.rate, Ramp: 30 * time.Second}, Counts: redrive.Counts{
			Selected: c.selected, Sent: c.sent, Skipped: map[string]int64{redrive.SkippedExpired: c.skipped},
		}}
		if got, known := sendingLeft(o, c.limit, c.slow); got != c.want || known != c.known {
			t.Errorf("%s: %v, %v; want %v, %v", c.name, got, known, c.want, c.known)
		}
	}
}

func TestPhaseOf_HasTheTimeLeft(t *testing.T) {
	t.Parallel()
	o := redrive.Outcome{Heartbeat: clitest.Noon, Pace: redrive.Pace{Rate: 50}, Counts: redrive.Counts{Selected: 1100, Sent: 100}, WindowEnds: clitest.Noon.Add(23 * time.Second)}
	for state, want := range map[redrive.State]string{
		redrive.Canary: "canary", redrive.Sending: "sending (20s left)", redrive.Waiting: "waiting", redrive.Watching: "watching (23s left)", redrive.Done: "done",
	} {
		o.State = state
		if got := phaseOf(o, 0, clitest.Noon); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	o.State = redrive.Watching
	// the last poll is still to come
	if got := phaseOf(o, 0, clitest.Noon.Add(time.Minute)); got != "watching" {
		t.Errorf("after the window: %q", got)
	}
	o.Waiting = "outcomes unknown"
	if got := phaseOf(o, 0, clitest.Noon); got != "watching" {
		t.Errorf("while it can't read: %q", got)
	}
}
