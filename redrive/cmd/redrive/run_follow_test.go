package main

import (
	"testing"

	"github.com/sidingkafka/siding/redrive"
)

// Of a run that had sent all and did not end, since nobody could look, one saw "watching" and no
// reason.
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
		event(redrive.Watching, "nobody knows"), event(redrive.Watching, "nobody knows"),
		event(redrive.Watching, ""), // it looks
		event(redrive.Watching, "nobody knows"),
		// as it was written down of the run, which is further
		message(redrive.Canary, "is the broker there?\nit is not"),
		event(redrive.Watching, ""),
		event(redrive.Done, ""),
	} {
		on(e)
	}
	want := "sending\nwaiting: the group is behind\ncontinuing: sending\nwaiting: the group is behind\ncontinuing: watching\nwaiting: nobody knows\nis the broker there?; it is not\n"
	if got := words.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
