package chaos

import (
	"maps"
	"slices"
	"time"

	"github.com/sidingkafka/siding/consumer"
)

// pauseTime is how long a lane may run nothing while a handler of another one is stuck.
const pauseTime = 5 * time.Second

// lanesRule: while a handler is stuck in one lane, its process goes on with the others. It is
// checked where nothing else was done to the service, on lanes that ran records all the time before
// and after.
//
// And no process starts a record of a lane that it does not have, as its journal tells.
func lanesRule(ev *evidence, f *findings) {
	for _, name := range slices.Sorted(maps.Keys(ev.told)) {
		strangers(ev, name, f)
	}
	for _, s := range ev.services {
		for _, r := range s.records {
			if r.script.act != actStuck {
				continue
			}
			for _, x := range r.runs {
				if x.end == 0 || x.end-x.start < int64(stuckFor) {
					continue
				}
				if busy(ev, x.start-int64(10*time.Second), x.end+int64(pauseTime)) || ev.disturbed(x.member, x.start, x.end) {
					f.counted["stuck among other faults"]++
					continue
				}
				f.counted["stuck alone"]++
				lanesBeside(ev, s, r, x, f)
			}
		}
	}
}

// strangers checks that a member starts records of its lanes only.
func strangers(ev *evidence, name string, f *findings) {
	is := ev.told[name]
	last := map[tp]laneChange{}
	n := 0
	for _, x := range is.runs {
		for ; n < len(is.lanes) && is.lanes[n].at <= x.start; n++ {
			c := is.lanes[n]
			if c.lane == everyLane && c.what != laneRestarted {
				f.counted["processes whose lanes the log does not name"]++
				return
			}
			last[c.lane] = c
		}
		c, ok := last[x.lane]
		switch {
		case x.lane.topic == "": // of a record that the brokers lost
		case !ok:
			f.note(x.lane.topic, x.lane.partition, x.offset, "%v, and the lane was not assigned to it", x)
		case !c.what.begins() && x.start-c.at > lineSlack && !ev.stoodStill(name, c.at, x.start):
			f.note(x.lane.topic, x.lane.partition, x.offset, "%v, and the lane had ended at %s", x, clockTime(c.at))
		}
	}
}

// busy reports whether anything but a stuck handler was injected in a time.
func busy(ev *evidence, from, to int64) bool {
	return ev.during(func(w window) bool { return w.kind != "stuck" }, from, to)
}

// lanesBeside checks the other lanes of a process with a stuck handler.
func lanesBeside(ev *evidence, s *served, r *record, x *run, f *findings) {
	runs := map[int32][]*run{} // in the order of their starts
	for _, y := range ev.told[x.member].runs {
		if y.topic == r.origin.Topic && y.start > x.start-int64(pauseTime) && y.start < x.end+int64(pauseTime) {
			runs[y.partition] = append(runs[y.partition], y)
		}
	}
	for partition, all := range runs {
		if partition == r.origin.Partition {
			continue
		}
		if slices.ContainsFunc(ev.told[x.member].changes(tp{r.origin.Topic, partition}, all[0].start, x.end), func(c laneChange) bool { return !c.what.begins() }) {
			continue // it is another member's by now
		}
		f.counted["lanes beside a stuck handler"]++
		// The load reaches each partition many times a second; until its end. After that a lane may
		// have nothing left but what waits for a stuck record of its key.
		for i, y := range all {
			from, next := y.start, x.end
			if i+1 < len(all) {
				next = all[i+1].start
			}
			next = min(next, ev.loaded)
			if s.Order == consumer.OrderPartition {
				from = max(from, ev.until(y)) // a handler may be stuck in this lane, too
			}
			if next-from > int64(pauseTime) {
				from = max(from, suspectsUntil(ev, y))
			}
			if pause := next - from; pause > int64(pauseTime) {
				f.add(r, r.origin, []*run{x}, "its handler was stuck, and %s/%d ran nothing for %v from %s on", s.Topics[0], partition,
					time.Duration(pause), clockTime(from))
			}
		}
	}
}

// suspectsUntil is the latest end of the suspects that had begun in a run's lane before it. The
// lane runs nothing behind a suspect, which may be stuck, too.
func suspectsUntil(ev *evidence, y *run) (at int64) {
	is := ev.told[y.member]
	for _, z := range is.runs {
		if z.topic == y.topic && z.partition == y.partition && z.start <= y.start && is.suspected(z) {
			at = max(at, ev.until(z))
		}
	}
	return at
}
