package consumers

import (
	"time"

	"github.com/sidingkafka/siding/internal/commitmark"
)

// Lane is a partition of a topic, and the same partition of each tier.
type Lane struct {
	Partition int32
	commitmark.Lane
	Suspects commitmark.Suspects // of the source, or of the tier with the most deaths
	// Uncommitted reports that a member has the partition, and siding has never committed it: the
	// lane has not started.
	Uncommitted bool
	// Unassigned reports that no member has the partition, though the group has members.
	Unassigned bool
	Member     string // the id of the member that has it, empty if none has
	Lag        int64  // or Unknown
}

// Says reports whether the lane is worth a line.
func (l *Lane) Says() bool {
	return l.State != 0 || !l.OpenSince.IsZero() || l.Suspects.Deaths > 0 || l.Uncommitted || l.Unassigned
}

// The states of lanes, as programs name them.
const (
	Starting   = "starting"
	Unassigned = "unassigned"
	Running    = "running"
)

var states = map[commitmark.LaneState][2]string{
	commitmark.Stopped:    {"stopped", "stopped at a record that may not be skipped"},
	commitmark.Missing:    {"missing", "blocked: a topic is missing that it has to write to"},
	commitmark.Denied:     {"denied", "blocked: it lacks the permission to write to a topic"},
	commitmark.Refused:    {"refused", "blocked: brokers do not accept what it writes"},
	commitmark.Unreadable: {"unreadable", "blocked: it cannot be read"},
	commitmark.Stuck:      {"stuck", "stuck: a handler runs past its timeout"},
	commitmark.Paused:     {"paused", "paused by the service"},
}

// Name is the lane's state as programs name it.
func (l *Lane) Name() string {
	switch s, ok := states[l.State]; {
	case ok:
		return s[0]
	case l.Uncommitted:
		return Starting
	case l.Unassigned:
		return Unassigned
	}
	return Running
}

// why returns what keeps the lane's records from running, and since when. It is empty if nothing
// does.
func (l *Lane) why() (text string, since time.Time) {
	switch s, ok := states[l.State]; {
	case ok:
		return s[1], l.Since
	case l.Uncommitted:
		return "not started: it waits for its retry topics, or for its first commit", time.Time{}
	case l.Unassigned:
		return "no member has it", time.Time{}
	}
	return "", time.Time{}
}
