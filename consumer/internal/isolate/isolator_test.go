package isolate

import "testing"

// A unit of the lane may have many records, of which the one that is to run alone is a late one. So
// the lane waits as all others do, until no handler runs.
func TestIsolator_HoldsItsOwnLaneWhileItGathers(t *testing.T) {
	t.Parallel()
	type one struct {
		Lane
		_ byte
	}
	l, other := Lane(&one{}), Lane(&one{})
	var s Isolator
	if s.Holds(l) {
		t.Error("a lane waits, and no record runs alone")
	}
	s.alone.Store(&l)
	for _, gathers := range []bool{true, false} {
		if s.gathers.Store(gathers); s.Holds(l) != gathers || !s.Holds(other) {
			t.Errorf("handlers run: %v; its lane waits: %v, another one: %v", gathers, s.Holds(l), s.Holds(other))
		}
	}
}
