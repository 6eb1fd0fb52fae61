package trace

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// laneLog is a log handler that writes to the journal when lanes begin and end, and which of their
// records are suspects, as the consumer's log says it. The consumer reports that nowhere else.
type laneLog struct {
	journal *Journal
	with    map[string]string // attributes of all lines
	// uncommitted is when lanes were last handed over without their last commit, in nanoseconds.
	uncommitted *atomic.Int64
}

// uncommittedLine comes before the line about the end of the lanes that it is about.
const uncommittedLine = "siding: lanes handed over without their last commit; records since their previous commit run again"

// laneLines are the lines about the beginning or the end of lanes. Those without partitions are
// about all lanes of the process.
var laneLines = map[string]Change{
	"siding: lanes assigned": LaneAssigned,
	"siding: lanes revoked":  LaneHandedOver,
	"siding: the membership was lost; records that were not committed run again":                                           LaneEnded,
	"siding: the member was expelled and has joined again; its partitions restart from the committed offsets":              LaneRestarted,
	"siding: the log was truncated; its lane restarts":                                                                     LaneRestarted,
	"siding: the log of a retry topic was truncated or replaced; its lane restarts":                                        LaneRestarted,
	"siding: the position is beyond the log's end, so the log was replaced; reading it from its start":                     LaneReread,
	"siding: the committed offset is beyond the log's end, so the log was replaced; reading it from its start":             LaneReread,
	"siding: a source topic was deleted and recreated; its lanes restart, and their unfinished records are gone":           LaneRestarted,
	"siding: a retry topic was deleted and recreated; its lanes restart, and the records parked in the old topic are gone": LaneRestarted,
}

// suspectsLine names the records of a feed that run in groups, as processes died while they ran.
const suspectsLine = "siding: processes died while they ran these records; they run in groups and one by one, until the one that kills is found"

// NewLaneLog returns a handler that is to see all lines of a consumer.
func NewLaneLog(j *Journal) slog.Handler {
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
			Fatal(err)
		}
		return nil
	}
	if what == LaneHandedOver {
		// Another drain at the same time makes a hand-over look worse than it was, never better.
		took, err := time.ParseDuration(about["took"])
		if err != nil || about["cancelled"] != "0" || h.uncommitted.Load() > now.Add(-took-time.Second).UnixNano() {
			what = LaneEnded
		}
	}
	lanes := []TP{EveryLane}
	if text, ok := about["partitions"]; ok {
		lanes = namedLanes(text)
	} else if n, err := strconv.Atoi(about["partition"]); err == nil {
		lanes = []TP{{about["topic"], int32(n)}}
	}
	if what == LaneHandedOver && slices.Contains(lanes, EveryLane) {
		what = LaneEnded // the member may have kept some
	}
	for _, l := range lanes {
		if err := h.journal.lane(now, what, l); err != nil {
			Fatal(err)
		}
	}
	return nil
}

// namedLanes reads what a line of the log says of partitions: "bills/0 orders/0-5,7". It is every
// lane if the line does not name all of them.
func namedLanes(text string) (lanes []TP) {
	for _, word := range strings.Fields(text) {
		topic, partitions, ok := cutLast(word, "/")
		if !ok {
			return []TP{EveryLane}
		}
		for _, r := range strings.Split(partitions, ",") {
			first, last, _ := strings.Cut(r, "-")
			from, err := strconv.Atoi(first)
			to, err2 := strconv.Atoi(cmp.Or(last, first))
			if err != nil || err2 != nil {
				return []TP{EveryLane}
			}
			for p := from; p <= to; p++ {
				lanes = append(lanes, TP{topic, int32(p)})
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
