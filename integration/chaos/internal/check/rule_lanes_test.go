package check

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// A process starts records of its lanes only.
func TestLanes_FindsStrangers(t *testing.T) {
	t.Parallel()
	lane := trace.TP{Topic: "orders", Partition: 0}
	change := func(at time.Duration, what trace.Change) trace.LaneChange {
		return trace.LaneChange{At: int64(at), What: what, Lane: lane}
	}
	for _, test := range []struct {
		name  string
		lanes []trace.LaneChange
		want  int
	}{
		{"assigned", []trace.LaneChange{change(time.Second, trace.LaneAssigned)}, 0},
		{"of another partition", []trace.LaneChange{{At: int64(time.Second), What: trace.LaneAssigned, Lane: trace.TP{Topic: "orders", Partition: 1}}}, 1},
		{"handed over just now", []trace.LaneChange{change(time.Second, trace.LaneAssigned), change(19500*time.Millisecond, trace.LaneHandedOver)}, 0},
		{"handed over", []trace.LaneChange{change(time.Second, trace.LaneAssigned), change(15*time.Second, trace.LaneHandedOver)}, 1},
		{"handed over, and assigned again", []trace.LaneChange{change(time.Second, trace.LaneAssigned), change(15*time.Second, trace.LaneHandedOver), change(17*time.Second, trace.LaneAssigned)}, 0},
		{"restarted", []trace.LaneChange{change(time.Second, trace.LaneAssigned), change(15*time.Second, trace.LaneRestarted)}, 0},
		{"not all named", []trace.LaneChange{{At: int64(time.Second), What: trace.LaneAssigned, Lane: trace.EveryLane}}, 0},
	} {
		ev := &evidence{journals: map[string]trace.Logged{"a": {Runs: []*trace.Run{{Member: "a", Lane: lane, Start: int64(20 * time.Second)}}, Lanes: test.lanes}}}
		wants(t, test.name, find(lanesRule, ev), test.want)
	}
}

// While a handler is stuck, every other lane of its process goes on, also if its record is a
// suspect that ran alone.
func TestLanes_FindsALaneThatStandsStillBesideAStuckHandler(t *testing.T) {
	t.Parallel()
	lane, beside := trace.TP{Topic: "orders", Partition: 0}, trace.TP{Topic: "orders", Partition: 1}
	at := func(d time.Duration) *trace.Run {
		return &trace.Run{Member: "a", Topic: "orders", Partition: 1, Lane: beside, Start: int64(d), End: int64(d) + 1}
	}
	stands := []*trace.Run{at(59 * time.Second), at(81 * time.Second)}
	var goesOn []*trace.Run
	for d := 59 * time.Second; d < 82*time.Second; d += time.Second {
		goesOn = append(goesOn, at(d))
	}
	stuckToo := []*trace.Run{at(59 * time.Second), at(81 * time.Second)}
	stuckToo[0].End = int64(78 * time.Second)
	ownSuspect := &trace.Run{Member: "a", Topic: "orders", Partition: 1, Lane: beside, Offset: 20, Start: int64(40 * time.Second), End: int64(78 * time.Second)}
	laterSuspect := &trace.Run{Member: "a", Topic: "orders", Partition: 1, Lane: beside, Offset: 20, Start: int64(70 * time.Second), End: int64(78 * time.Second)}
	handedOver := []trace.LaneChange{{At: int64(59500 * time.Millisecond), What: trace.LaneHandedOver, Lane: beside}}
	for _, test := range []struct {
		order  consumer.Order
		others []*trace.Run
		lanes  []trace.LaneChange
		loaded time.Duration
		want   int
	}{
		{consumer.OrderPartition, stands, nil, time.Hour, 1},
		{consumer.OrderKey, stands, nil, 62 * time.Second, 0}, // there was nothing left to run
		{consumer.OrderPartition, goesOn, nil, time.Hour, 0},
		{consumer.OrderPartition, stands, handedOver, time.Hour, 0},
		{consumer.OrderPartition, stuckToo, nil, time.Hour, 0},
		{consumer.OrderKey, stuckToo, nil, time.Hour, 1},
		{consumer.OrderKey, append([]*trace.Run{ownSuspect}, stands...), nil, time.Hour, 0},
		{consumer.OrderKey, []*trace.Run{stands[0], laterSuspect, stands[1]}, nil, time.Hour, 1},
	} {
		stuck := &trace.Run{Member: "a", Topic: "orders", Lane: lane, Offset: 5, Start: int64(time.Minute), End: int64(80 * time.Second)}
		is := trace.Logged{Runs: append([]*trace.Run{stuck}, test.others...), Suspects: []trace.Suspects{{At: int64(time.Second), Feed: lane, From: 0, To: 10}, {At: int64(time.Second), Feed: beside, From: 20, To: 30}}, Lanes: test.lanes}
		ev := &evidence{journals: map[string]trace.Logged{"a": is}, loaded: int64(test.loaded)}
		r := &record{origin: &kgo.Record{Topic: "orders"}}
		s := &served{Service: trace.Service{Topics: []string{"orders"}, Order: test.order}}
		wants(t, fmt.Sprint("beside ", len(test.others), " runs, ", test.order), find(func(ev *evidence, f *findings) { lanesBeside(ev, s, r, stuck, f) }, ev), test.want)
	}
}
