package chaos

import (
	"testing"
	"time"
)

// Suspects that fail in an outage open no breaker, however long ago a process died. Nor do records
// in front of those that an owner before had finished. Others do.
func TestOutage_CountsNoRemnants(t *testing.T) {
	t.Parallel()
	lane := tp{"orders", 0}
	for _, test := range []struct {
		name  string
		lanes []laneChange
		left  int64 // in front of the last one that was finished
		to    int64
		want  int
	}{
		{"suspects", nil, 0, 500, 0},
		{"a few of them", nil, 0, 100, 1},
		{"of the lane before", []laneChange{{int64(30 * time.Second), laneAssigned, lane}}, 0, 500, 1},
		{"leftovers", []laneChange{{int64(30 * time.Second), laneAssigned, lane}}, 500, 0, 0},
		{"a few of them", []laneChange{{int64(30 * time.Second), laneAssigned, lane}}, 100, 0, 1},
	} {
		is := told{lanes: test.lanes, suspects: []suspects{{int64(time.Second), lane, 0, test.to}}}
		for offset := range int64(500) {
			at := int64(time.Minute) + offset
			is.runs = append(is.runs, &run{member: "a", topic: "orders", lane: lane, offset: offset, start: at, end: at + 1, verdict: verdictOutage})
		}
		ev := &evidence{members: map[string]*member{"a": {job: memberJob{Service: service{Topics: []string{"orders"}}}}}, told: map[string]told{
			"a": is, "b": {runs: []*run{{member: "b", topic: "orders", lane: lane, offset: test.left, start: 1, end: 2, verdict: verdictPassed}}},
		}}
		f := findings{rule: "outage", counted: map[string]int{}, excluded: map[string]int{}}
		if ev.openingCost("a", outageOf{"billing", int64(time.Minute), int64(2 * time.Minute)}, &f); len(f.broken) != test.want {
			t.Errorf("%s: found %v, want %d", test.name, f.broken, test.want)
		}
	}
}
