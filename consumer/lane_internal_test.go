package consumer

import "testing"

// A lane whose log was truncated restarts. If the group revoked the partition meanwhile, the
// successor stayed in the table after the lane was gone, and read its tiers at the same time as the
// next owner.
func TestLane_RevokedHasNoSuccessor(t *testing.T) {
	t.Parallel()
	c := idle(t, Config{}, func() {})
	c.retryPoll = newRetryPoll(c, nil)
	drains, stays := held(c, 0, "m"), held(c, 1, "m")
	if !drains.beginDrain() || drains.beginDrain() {
		t.Error("want a lane to begin to drain once")
	}
	if c.replacement(drains, beginAt(0)) != nil || c.lane("orders", 0) != drains {
		t.Error("a lane that drains was replaced")
	}
	if lost := c.lose(func(l *lane) bool { return l == stays }); len(lost) != 1 || c.lane("orders", 1) != nil || !stays.isGone() {
		t.Errorf("lost %d lanes, want one, gone and out of the table", len(lost))
	}
	if c.replacement(stays, beginAt(0)) != nil || c.lane("orders", 1) != nil {
		t.Error("a lane that was lost was replaced")
	}
}
