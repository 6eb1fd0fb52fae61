package consumers

import (
	"fmt"
	"slices"

	"github.com/sidingkafka/siding/internal/commitmark"
)

// The states of uses, beside those of lanes.
const (
	NoMembers   = "no members"
	Blocked     = "blocked" // by several reasons
	HeldBack    = "held"
	Strained    = "strained"
	NotRead     = "not read" // the group has members, and none has a partition
	Waits       = "waits"    // for an open transaction, or for an owner
	Isolating   = "suspects"
	Unseen      = "unknown"
	Rebalancing = "rebalancing"
	Runs        = "runs"
)

// State is the state of a use, what needs somebody first; bad if something does. Nobody needs to
// care for a group of another library that is gone: it may be anybody's trial.
func State(g *Group, u *Use) (state string, bad bool) {
	blocked := u.Blocked()
	has := func(is func(l *Lane) bool) bool {
		return slices.ContainsFunc(u.Lanes, func(l Lane) bool { return is(&l) })
	}
	switch stable := g.Undescribed == nil && g.State == "Stable"; {
	case g.Idle():
		return NoMembers, u.Siding && (u.Lag != 0 || u.Parked() != 0)
	case len(blocked) > 0:
		name := blocked[0].Name()
		for _, l := range blocked {
			if l.Name() != name {
				name = Blocked
			}
		}
		return name, true
	case u.Held():
		return HeldBack, true
	case u.Guard != nil:
		return Strained, true
	case stable && u.Assigned == 0:
		return NotRead, u.Siding && (u.Lag != 0 || u.Parked() != 0)
	case has(func(l *Lane) bool { return l.Unassigned || !l.OpenSince.IsZero() }):
		return Waits, true
	case has(func(l *Lane) bool { return l.State == commitmark.Paused }):
		return states[commitmark.Paused][0], false
	case has(func(l *Lane) bool { return l.Suspects.Isolated }):
		return Isolating, true
	case g.Undescribed != nil:
		return Unseen, false
	case !stable:
		return Rebalancing, false
	}
	return Runs, false
}

// Headline is the state of a use in a few words, with the number of partitions that are blocked.
func Headline(g *Group, u *Use) (text string, bad bool) {
	text, bad = State(g, u)
	if n := len(u.Blocked()); n > 0 && text != NoMembers {
		text = fmt.Sprintf("%s: %d of %d", text, n, max(u.Partitions, n))
	}
	return text, bad
}
