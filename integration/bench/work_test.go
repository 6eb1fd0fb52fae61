package main

import "testing"

func TestCrowd_KeepsTheMostAtATime(t *testing.T) {
	t.Parallel()
	var c crowd
	for _, change := range []func(){c.enter, c.enter, c.leave, c.enter, c.enter, c.leave, c.leave, c.leave, c.enter} {
		change()
	}
	if got := c.most.Load(); got != 3 {
		t.Errorf("%d at a time, want 3", got)
	}
}
