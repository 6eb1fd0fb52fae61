package check

import (
	"maps"
	"slices"
	"time"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// pauseTime is how long a lane may run nothing while a handler of another one is stuck.
const pauseTime = 5 * time.Second

// lanesRule: while a handler is stuck in one lane, its process goes on with the others. It is
// checked where nothing else was done to the service, on lanes that ran records all the time before
// and after.
//
// And no process starts a record of a lane that it does not have, as its journal has it.
func lanesRule(ev *evidence, f *findings) {
	for _, name := range slices.Sorted(maps.Keys(ev.journals)) {
		strangers(ev, name, f)
	}
	for s, r := range ev.records() {
		if r.script.Act != trace.ActStuck {
			continue
		}
		for _, x := range r.runs {
			if x.End == 0 || x.End-x.Start < int64(trace.StuckFor) {
				continue
			}
			if busy(ev, x.Start-int64(10*time.Second), x.End+int64(pauseTime)) || ev.disturbed(x.Member, x.Start, x.End) {
				f.counted["stuck among other faults"]++
				continue
			}
			f.counted["stuck alone"]++
			lanesBeside(ev, s, r, x, f)
		}
	}
}

// strangers checks that a member starts records of its lanes only.
func strangers(ev *evidence, name string, f *findings) {
	is := ev.journals[name]
	last := map[trace.TP]trace.LaneChange{}
	n := 0
	for _, x := range is.Runs {
		for ; n < len(is.Lanes) && is.Lanes[n].At <= x.Start; n++ {
			c := is.Lanes[n]
			if c.Lane == trace.EveryLane && c.What != trace.LaneRestarted {
				f.counted["processes whose lanes the log does not name"]++
				return
			}
			last[c.Lane] = c
		}
		c, ok := last[x.Lane]
		switch {
		case x.Lane.Topic == "": // of a record that the brokers lost
		case !ok:
			f.report(x.Lane.Topic, x.Lane.Partition, x.Offset, "%v, and the lane was not assigned to it", x)
		case !c.What.Begins() && x.Start-c.At > trace.LineSlack && !ev.stoodStill(name, c.At, x.Start):
			f.report(x.Lane.Topic, x.Lane.Partition, x.Offset, "%v, and the lane had ended at %s", x, trace.ClockTime(c.At))
		}
	}
}

// busy reports whether anything but a stuck handler was injected in a time.
func busy(ev *evidence, from, to int64) bool {
	return ev.during(func(w trace.Window) bool { return w.Kind != "stuck" }, from, to)
}

// lanesBeside checks the other lanes of a process with a stuck handler.
func lanesBeside(ev *evidence, s *served, r *record, x *trace.Run, f *findings) {
	runs := map[int32][]*trace.Run{} // in the order of their starts
	for _, y := range ev.journals[x.Member].Runs {
		if y.Topic == r.origin.Topic && y.Start > x.Start-int64(pauseTime) && y.Start < x.End+int64(pauseTime) {
			runs[y.Partition] = append(runs[y.Partition], y)
		}
	}
	for partition, all := range runs {
		if partition == r.origin.Partition {
			continue
		}
		if slices.ContainsFunc(ev.journals[x.Member].Changes(trace.TP{Topic: r.origin.Topic, Partition: partition}, all[0].Start, x.End), func(c trace.LaneChange) bool { return !c.What.Begins() }) {
			continue // it is another member's by now
		}
		f.counted["lanes beside a stuck handler"]++
		// The load reaches each partition many times a second; until its end. After that a lane may
		// have nothing left but what waits for a stuck record of its key.
		for i, y := range all {
			from, next := y.Start, x.End
			if i+1 < len(all) {
				next = all[i+1].Start
			}
			next = min(next, ev.loaded)
			if s.Order == consumer.OrderPartition {
				from = max(from, ev.until(y)) // a handler may be stuck in this lane, too
			}
			if next-from > int64(pauseTime) {
				from = max(from, suspectsUntil(ev, y))
			}
			if pause := next - from; pause > int64(pauseTime) {
				f.add(r, r.origin, []*trace.Run{x}, "its handler was stuck, and %s/%d ran nothing for %v from %s on", s.Topics[0], partition,
					time.Duration(pause), trace.ClockTime(from))
			}
		}
	}
}

// suspectsUntil is the latest end of the suspects that had begun in a run's lane before it. The
// lane runs nothing behind a suspect, which may be stuck, too.
func suspectsUntil(ev *evidence, y *trace.Run) (at int64) {
	is := ev.journals[y.Member]
	for _, z := range is.Runs {
		if z.Topic == y.Topic && z.Partition == y.Partition && z.Start <= y.Start && is.Suspected(z) {
			at = max(at, ev.until(z))
		}
	}
	return at
}
