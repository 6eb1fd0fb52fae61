// Package consumers shows the consumer groups of topics from outside: their members and lag, and
// what the commits of siding's consumers say about guards, lanes, suspects and the release.
package consumers

import (
	"time"

	"github.com/sidingkafka/siding/internal/commitmark"
	"github.com/sidingkafka/siding/internal/guards"
)

// Unknown is a number that is not known.
const Unknown = -1

// Group is a consumer group.
type Group struct {
	Name string
	// State is as the broker calls it, such as "Stable" or "Empty"; empty if it is not known.
	State   string
	Members []Member
	// Undescribed is why the state and the members are not known; nil if they are.
	Undescribed error
	Uses        []Use // by topic, in the order of their names
}

// Member is a member of a group.
type Member struct {
	ID, Instance, Client, Host string             // Instance is empty unless the member is static
	Partitions                 map[string][]int32 // of the topics that were asked for, ascending
	// Releases are those that the commits of its partitions name, ascending; one as a rule.
	Releases []string
}

// Use is what a group does with a topic.
type Use struct {
	Topic string
	// Siding reports whether a consumer of siding has committed for the group.
	Siding     bool
	Partitions int   // of the topic; Unknown
	Assigned   int   // partitions that members have
	Lag        int64 // offsets between the commits and the logs' ends; Unknown
	Guard      *guards.Guard
	Lanes      []Lane // partitions of which there is something to say, ascending
	Tiers      []Tier // shortest delay first
	Releases   []string
}

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

// Tier is a retry topic that a group uses for a topic.
type Tier struct {
	Topic string
	Delay time.Duration
	// Parked is how many offsets lie between the commits and the logs' ends, or Unknown. Markers of
	// transactions and the records of other groups count too, so it may be too high, never too low.
	Parked int64
	// NextDue is when the first of these records is due, of the oldest in each partition. It is zero
	// if it is not known, or none is parked; Seen.FindDue finds it.
	NextDue time.Time

	from map[int32]int64 // where the group is on the partitions that have such records
}

// Held reports whether the guard holds the topic.
func (u *Use) Held() bool { return u.Guard != nil && u.Guard.Held }

// Blocked returns the lanes whose records do not run, other than those that the service paused.
func (u *Use) Blocked() (all []Lane) {
	for _, l := range u.Lanes {
		if l.State != 0 && l.State != commitmark.Paused || l.Uncommitted {
			all = append(all, l)
		}
	}
	return all
}

// Idle reports whether it is known that no member is there to run what is left.
func (g *Group) Idle() bool { return g.Undescribed == nil && g.State != "" && len(g.Members) == 0 }
