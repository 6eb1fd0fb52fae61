package chaos

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
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

// While a handler is stuck, every other lane of its process goes on, also if its record is a
// suspect that ran alone.
func TestLanes_FindsALaneThatStandsStillBesideAStuckHandler(t *testing.T) {
	t.Parallel()
	lane, beside := tp{"orders", 0}, tp{"orders", 1}
	at := func(d time.Duration) *run {
		return &run{member: "a", topic: "orders", partition: 1, lane: beside, start: int64(d), end: int64(d) + 1}
	}
	stands := []*run{at(59 * time.Second), at(81 * time.Second)}
	var goesOn []*run
	for d := 59 * time.Second; d < 82*time.Second; d += time.Second {
		goesOn = append(goesOn, at(d))
	}
	stuckToo := []*run{at(59 * time.Second), at(81 * time.Second)}
	stuckToo[0].end = int64(78 * time.Second)
	ownSuspect := &run{member: "a", topic: "orders", partition: 1, lane: beside, offset: 20, start: int64(40 * time.Second), end: int64(78 * time.Second)}
	laterSuspect := &run{member: "a", topic: "orders", partition: 1, lane: beside, offset: 20, start: int64(70 * time.Second), end: int64(78 * time.Second)}
	handedOver := []laneChange{{int64(59500 * time.Millisecond), laneHandedOver, beside}}
	for _, test := range []struct {
		order  consumer.Order
		others []*run
		lanes  []laneChange
		loaded time.Duration
		want   int
	}{
		{consumer.OrderPartition, stands, nil, time.Hour, 1},
		{consumer.OrderKey, stands, nil, 62 * time.Second, 0}, // there was nothing left to run
		{consumer.OrderPartition, goesOn, nil, time.Hour, 0},
		{consumer.OrderPartition, stands, handedOver, time.Hour, 0},
		{consumer.OrderPartition, stuckToo, nil, time.Hour, 0},
		{consumer.OrderKey, stuckToo, nil, time.Hour, 1},
		{consumer.OrderKey, append([]*run{ownSuspect}, stands...), nil, time.Hour, 0},
		{consumer.OrderKey, []*run{stands[0], laterSuspect, stands[1]}, nil, time.Hour, 1},
	} {
		stuck := &run{member: "a", topic: "orders", lane: lane, offset: 5, start: int64(time.Minute), end: int64(80 * time.Second)}
		is := told{runs: append([]*run{stuck}, test.others...), suspects: []suspects{{int64(time.Second), lane, 0, 10}, {int64(time.Second), beside, 20, 30}}, lanes: test.lanes}
		ev := &evidence{told: map[string]told{"a": is}, loaded: int64(test.loaded)}
		f := findings{rule: "lanes", counted: map[string]int{}, excluded: map[string]int{}}
		r := &record{origin: &kgo.Record{Topic: "orders"}}
		if lanesBeside(ev, &served{service: service{Topics: []string{"orders"}, Order: test.order}}, r, stuck, &f); len(f.broken) != test.want {
			t.Errorf("beside %d runs, %v: found %v, want %d", len(test.others), test.order, f.broken, test.want)
		}
	}
}
