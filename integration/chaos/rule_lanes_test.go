package chaos

import (
	"testing"
	"time"
)

// A process starts records of its lanes only.
func TestLanes_FindsStrangers(t *testing.T) {
	t.Parallel()
	lane := tp{"orders", 0}
	change := func(at time.Duration, what change) laneChange { return laneChange{int64(at), what, lane} }
	for _, test := range []struct {
		name  string
		lanes []laneChange
		want  int
	}{
		{"assigned", []laneChange{change(time.Second, laneAssigned)}, 0},
		{"of another partition", []laneChange{{int64(time.Second), laneAssigned, tp{"orders", 1}}}, 1},
		{"handed over just now", []laneChange{change(time.Second, laneAssigned), change(19500*time.Millisecond, laneHandedOver)}, 0},
		{"handed over", []laneChange{change(time.Second, laneAssigned), change(15*time.Second, laneHandedOver)}, 1},
		{"handed over, and assigned again", []laneChange{change(time.Second, laneAssigned), change(15*time.Second, laneHandedOver), change(17*time.Second, laneAssigned)}, 0},
		{"restarted", []laneChange{change(time.Second, laneAssigned), change(15*time.Second, laneRestarted)}, 0},
		{"not all named", []laneChange{{int64(time.Second), laneAssigned, everyLane}}, 0},
	} {
		ev := &evidence{told: map[string]told{"a": {runs: []*run{{member: "a", lane: lane, start: int64(20 * time.Second)}}, lanes: test.lanes}}}
		f := findings{rule: "lanes", counted: map[string]int{}, excluded: map[string]int{}}
		if lanesRule(ev, &f); len(f.broken) != test.want {
			t.Errorf("%s: found %v, want %d", test.name, f.broken, test.want)
		}
	}
}
