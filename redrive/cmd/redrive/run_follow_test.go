package main

import (
	"testing"

	"github.com/sidingkafka/siding/redrive"
)

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
	tl, words := quietTool(nil)
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
