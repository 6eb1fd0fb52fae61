package run

import (
	"math"
	"testing"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
)

// A follower reads counts some seconds apart, and took the average over a ramp for the speed of a
// slow group: it printed too long a time left.
func TestSpeed_IsSlowOnlyBehindTheLimit(t *testing.T) {
	t.Parallel()
	o := redrive.Outcome{State: redrive.Canary, Pace: redrive.Pace{Rate: 100, Ramp: 10 * time.Second}, Counts: redrive.Counts{Selected: 10_000}}
	var s speed
	for _, c := range []struct {
		after int // seconds
		state redrive.State
		sent  int64
		slow  float64
		left  string
	}{
		{0, redrive.Canary, 0, 0, "canary"},
		{5, redrive.Sending, 1, 0, "sending (1m44s left)"}, // the ramp begins
		{10, redrive.Sending, 164, 0, "sending (1m39s left)"},
		// 77 a second, which is what the ramp allows
		{15, redrive.Sending, 551, 0, "sending (1m34s left)"},
		{20, redrive.Sending, 1051, 0, "sending (1m29s left)"},
		{25, redrive.Sending, 1151, 20, "sending (7m22s left)"}, // now it is the group that is slow
		{30, redrive.Waiting, 1151, 0, "waiting"},
		// nothing is known of the speed again
		{35, redrive.Sending, 1151, 0, "sending (1m28s left)"},
		{40, redrive.Sending, 1651, 0, "sending (1m23s left)"},
	} {
		o.State, o.Counts.Sent, o.Heartbeat = c.state, c.sent, clitest.Noon.Add(time.Duration(c.after)*time.Second)
		if c.after == 5 {
			o.RampBegan = o.Heartbeat
		}
		s.add(o)
		if got := s.slow(); got != c.slow {
			t.Errorf("after %d s: slow is %g, want %g", c.after, got, c.slow)
		}
		if got := phaseOf(o, s.slow(), o.Heartbeat); got != c.left {
			t.Errorf("after %d s: %q, want %q", c.after, got, c.left)
		}
	}
	// between two heartbeats the time goes on
	if got := phaseOf(o, 0, o.Heartbeat.Add(3*time.Second)); got != "sending (1m20s left)" {
		t.Errorf("later: %q", got)
	}
}

// A run had sent all its letters, and could not read the outcomes. So it did not end, and printed
// "watching" without a reason.
func TestFollow_ReportsOnceWhatARunWaitsFor(t *testing.T) {
	t.Parallel()
	event := func(state redrive.State, waiting string) redrive.Event {
		return redrive.Event{Outcome: redrive.Outcome{State: state, Waiting: waiting}}
	}
	message := func(state redrive.State, text string) redrive.Event {
		return redrive.Event{Outcome: redrive.Outcome{State: state}, Message: text}
	}
	tl, words := clitest.NewTool(nil)
	on := follow(tl, func(redrive.Event) {})
	for _, e := range []redrive.Event{
		event(redrive.Sending, ""),
		event(redrive.Waiting, "the group is behind"), event(redrive.Waiting, "the group is behind"),
		event(redrive.Sending, ""),
		event(redrive.Waiting, "the group is behind"),
		event(redrive.Watching, ""),
		event(redrive.Watching, "outcomes unknown"), event(redrive.Watching, "outcomes unknown"),
		event(redrive.Watching, ""), // it looks
		event(redrive.Watching, "outcomes unknown"),
		// the state in the run's record, which the run has passed
		message(redrive.Canary, "is the broker there?\nit is not"),
		event(redrive.Watching, ""),
		event(redrive.Done, ""),
	} {
		on(e)
	}
	want := "sending\nwaiting: the group is behind\ncontinuing: sending\nwaiting: the group is behind\ncontinuing: watching\nwaiting: outcomes unknown\nis the broker there?; it is not\n"
	if got := words.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

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
