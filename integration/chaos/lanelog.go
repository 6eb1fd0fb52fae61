package chaos

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// laneLog is a log handler that tells the journal when lanes begin and end, and which of their
// records are suspects, as the consumer's log says it. The consumer has no other way to tell.
type laneLog struct {
	journal *journal
	with    map[string]string // attributes of all lines
	// uncommitted is when lanes were last handed over without their last commit, in nanoseconds.
	uncommitted *atomic.Int64
}

// change is what happened to a lane.
type change string

const (
	laneAssigned  change = "assigned"
	laneRestarted change = "restarted" // from where it was, or from where its log was cut
	laneReread    change = "reread"    // from the log's start: the log was taken for another one
	// All handlers returned, and what they finished was committed.
	laneHandedOver change = "handed-over"
	// The lane ended, and a handler was cut off or a commit failed; or the membership was lost.
	laneEnded change = "ended"
)

// begins reports whether a lane is another one since.
func (c change) begins() bool { return c == laneAssigned || c == laneRestarted || c == laneReread }

// uncommittedLine comes before the line about the end of the lanes that it is about.
const uncommittedLine = "siding: lanes handed over without their last commit; records since their previous commit run again"

// laneLines are the lines about the beginning or the end of lanes. Those without partitions are
// about all lanes of the process.
var laneLines = map[string]change{
	"siding: lanes assigned": laneAssigned,
	"siding: lanes revoked":  laneHandedOver,
	"siding: the membership was lost; records that were not committed run again":                                           laneEnded,
	"siding: the member was expelled and has joined again; its partitions restart from the committed offsets":              laneRestarted,
	"siding: the log was truncated; its lane restarts":                                                                     laneRestarted,
	"siding: the log of a retry topic was truncated or replaced; its lane restarts":                                        laneRestarted,
	"siding: the position is beyond the log's end, so the log was replaced; reading it from its start":                     laneReread,
	"siding: the committed offset is beyond the log's end, so the log was replaced; reading it from its start":             laneReread,
	"siding: a source topic was deleted and recreated; its lanes restart, and their unfinished records are gone":           laneRestarted,
	"siding: a retry topic was deleted and recreated; its lanes restart, and the records parked in the old topic are gone": laneRestarted,
}

// suspectsLine names the records of a feed that run in groups, as processes died while they ran.
const suspectsLine = "siding: processes died while they ran these records; they run in groups and one by one, until the one that kills is found"

func newLaneLog(j *journal) slog.Handler {
	return laneLog{journal: j, uncommitted: new(atomic.Int64)}
}

// Enabled implements slog.Handler, as do the methods below.
func (laneLog) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// WithAttrs keeps the attributes for the lines to come.
func (h laneLog) WithAttrs(all []slog.Attr) slog.Handler {
	h.with = maps.Clone(h.with)
	if h.with == nil {
		h.with = map[string]string{}
	}
	for _, a := range all {
		h.with[a.Key] = a.Value.String()
	}
	return h
}

// WithGroup drops the group.
func (h laneLog) WithGroup(string) slog.Handler { return h }

// Handle writes what a line says of lanes.
func (h laneLog) Handle(_ context.Context, r slog.Record) error {
	now := time.Now()
	if r.Message == uncommittedLine {
		h.uncommitted.Store(now.UnixNano())
	}
	what, ok := laneLines[r.Message]
	if !ok && r.Message != suspectsLine {
		return nil
	}
	about := maps.Clone(h.with) // the consumer may log a number or its text
	if about == nil {
		about = map[string]string{}
	}
	r.Attrs(func(a slog.Attr) bool {
		about[a.Key] = a.Value.String()
		return true
	})
	if r.Message == suspectsLine {
		if err := h.journal.suspects(now, about["feed"], about["partition"], about["from"], about["to"]); err != nil {
			fatal(err)
		}
		return nil
	}
	if what == laneHandedOver {
		// Another drain at the same time makes a hand-over look worse than it was, never better.
		took, err := time.ParseDuration(about["took"])
		if err != nil || about["cancelled"] != "0" || h.uncommitted.Load() > now.Add(-took-time.Second).UnixNano() {
			what = laneEnded
		}
	}
	lanes := []tp{everyLane}
	if text, ok := about["partitions"]; ok {
		lanes = namedLanes(text)
	} else if n, err := strconv.Atoi(about["partition"]); err == nil {
		lanes = []tp{{about["topic"], int32(n)}}
	}
	if what == laneHandedOver && slices.Contains(lanes, everyLane) {
		what = laneEnded // the member may have kept some
	}
	for _, l := range lanes {
		if err := h.journal.lane(now, what, l); err != nil {
			fatal(err)
		}
	}
	return nil
}

// everyLane stands for all lanes of a process.
var everyLane = tp{"*", -1}

// namedLanes reads what a line of the log says of partitions: "bills/0 orders/0-5,7". It is every
// lane if the line does not name all of them.
func namedLanes(text string) (lanes []tp) {
	for _, word := range strings.Fields(text) {
		topic, partitions, ok := cutLast(word, "/")
		if !ok {
			return []tp{everyLane}
		}
		for _, r := range strings.Split(partitions, ",") {
			first, last, _ := strings.Cut(r, "-")
			from, err := strconv.Atoi(first)
			to, err2 := strconv.Atoi(cmp.Or(last, first))
			if err != nil || err2 != nil {
				return []tp{everyLane}
			}
			for p := from; p <= to; p++ {
				lanes = append(lanes, tp{topic, int32(p)})
			}
		}
	}
	return lanes
}

func cutLast(text, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(text, sep)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(sep):], true
}

// laneChange is what happened to a lane at a time.
type laneChange struct {
	at   int64 // nanoseconds
	what change
	lane tp // of its source
}

// lineSlack is how long after the line about a restart the old lane may start a record.
const lineSlack = int64(time.Second)

// changes returns what happened to a lane from one time to another, both included.
func (t told) changes(lane tp, from, to int64) (all []laneChange) {
	n, _ := slices.BinarySearchFunc(t.lanes, from, func(c laneChange, at int64) int { return cmp.Compare(c.at, at) })
	for _, c := range t.lanes[n:] {
		if c.at > to {
			break
		}
		if c.lane == lane || c.lane == everyLane {
			all = append(all, c)
		}
	}
	return all
}

// renewed reports whether a lane began anew between the starts of two runs.
func (t told) renewed(lane tp, from, to int64) bool {
	return slices.ContainsFunc(t.changes(lane, from-lineSlack, to), func(c laneChange) bool { return c.what.begins() })
}

// begunBy returns when the lane began that ran records at a time; 0 if the journal does not say.
func (t told) begunBy(lane tp, at int64) (began int64) {
	for _, c := range t.changes(lane, 0, at) {
		if c.what.begins() {
			began = c.at
		}
	}
	return began
}

// lostLast returns when the process, which may have ended, last lost a lane; 0 if never.
func (t told) lostLast(lane tp, before, ended int64) (last int64) {
	owned := false
	for _, c := range append(t.changes(lane, 0, before), laneChange{at: ended}) {
		if owned && c.at < before {
			last = max(last, c.at)
		}
		owned = c.what.begins()
	}
	return last
}

// kept returns how many of a partition's lanes, begun by a time, were not handed over in order.
func (t told) kept(lane tp, by int64) (n int) {
	owned := false
	for _, c := range t.changes(lane, 0, by) {
		if owned && c.what != laneHandedOver {
			n++
		}
		owned = c.what.begins()
	}
	if owned {
		n++
	}
	return n
}

// handedOver returns when the lane was handed over in order that a run began and ended in; ok is
// false if it had another end, or none. If the membership is lost as a drain ends, both ends are
// told of.
func (t told) handedOver(r *run) (at int64, ok bool) {
	changes := t.changes(r.lane, r.start-lineSlack, math.MaxInt64)
	for i, c := range changes {
		switch {
		case c.at < r.start && (c.what == laneRestarted || c.what == laneReread):
			return 0, false // the run may be of the lane before
		case c.at >= r.start:
			lost := i+1 < len(changes) && changes[i+1].what == laneEnded
			return c.at, c.what == laneHandedOver && r.end != 0 && c.at >= r.end && !lost
		}
	}
	return 0, false
}

// suspects are records of a feed that run in groups or one by one.
type suspects struct {
	at       int64 // nanoseconds
	feed     tp
	from, to int64 // offsets; to is behind the last one
}

// suspected reports whether a run was of a suspect. A lane that begins anew forgets its suspects.
func (t told) suspected(r *run) bool {
	return slices.ContainsFunc(t.suspects, func(s suspects) bool {
		return s.feed == tp{r.topic, r.partition} && s.from <= r.offset && r.offset < s.to && s.at <= r.start+lineSlack &&
			(s.at > r.start || !slices.ContainsFunc(t.changes(r.lane, s.at, r.start), func(c laneChange) bool { return c.what.begins() }))
	})
}

// starved reports whether the member's timers were late for so long in a time.
func (t *told) starved(from, to int64, least time.Duration) bool {
	return overlap(t.late, from, to) >= least
}

// overlap is how much of a time lies in others, which do not overlap.
func overlap(others [][2]int64, from, to int64) (sum time.Duration) {
	for _, o := range others {
		sum += time.Duration(max(0, min(o[1], to)-max(o[0], from)))
	}
	return sum
}
