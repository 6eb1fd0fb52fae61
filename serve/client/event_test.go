package client

import "testing"

// An event has what was sent for it, and nothing of the one before.
func TestFollow_EventsShareNothing(t *testing.T) {
	t.Parallel()
	events, err := followed(t, "id: 1\nevent: run\ndata: {\"state\":\"sending\",\"why\":\"x\"}\n\ndata: {\"state\":\"done\"}\n\n")
	if err != nil || len(events) != 2 {
		t.Fatalf("the events are %+v, %v", events, err)
	}
	if a, b := events[0], events[1]; a.ID != "1" || a.Run.State != "sending" || a.Run.Why != "x" || b.ID != "" || b.Run.State != "done" || b.Run.Why != "" {
		t.Errorf("the events are %+v", events)
	}
}
