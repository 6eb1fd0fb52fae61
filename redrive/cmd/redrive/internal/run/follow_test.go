package run

import (
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
