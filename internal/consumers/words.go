package consumers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sidingkafka/siding/internal/commitmark"
)

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

// The kinds of troubles. A lane has one of each kind at most.
const (
	KindBlocked     = "blocked" // no record runs
	KindPaused      = "paused"
	KindUnassigned  = "unassigned"
	KindTransaction = "transaction"
	KindSuspects    = "suspects"
)

// Kinds are the kinds of troubles.
var Kinds = []string{KindBlocked, KindPaused, KindUnassigned, KindTransaction, KindSuspects}

// Trouble is one thing that several lanes of a use have in common.
type Trouble struct {
	Kind, Text string
	Since      time.Time // the first; zero if it is not known
	Partitions []int32
	Lag        int64 // of these; Unknown
}

// Troubles groups the lanes of a use by what is wrong with them: what most partitions have first.
func (u *Use) Troubles() (all []Trouble) {
	add := func(l *Lane, kind, text string, since time.Time) {
		i := slices.IndexFunc(all, func(t Trouble) bool { return t.Text == text })
		if i < 0 {
			i = len(all)
			all = append(all, Trouble{Kind: kind, Text: text})
		}
		t := &all[i]
		if !since.IsZero() && (t.Since.IsZero() || since.Before(t.Since)) {
			t.Since = since
		}
		t.Partitions, t.Lag = append(t.Partitions, l.Partition), sum(t.Lag, l.Lag)
	}
	for i := range u.Lanes {
		l := &u.Lanes[i]
		if text, since := l.why(); text != "" {
			kind := KindBlocked
			switch l.Name() {
			case states[commitmark.Paused][0]:
				kind = KindPaused
			case Unassigned:
				kind = KindUnassigned
			}
			add(l, kind, text, since)
		}
		if !l.OpenSince.IsZero() {
			add(l, KindTransaction, "an open transaction is ahead of it", l.OpenSince)
		}
		switch s := l.Suspects; {
		case s.Condemned > 0:
			add(l, KindSuspects, fmt.Sprintf("%d processes died: the record that killed them is known, and becomes a dead letter", s.Deaths), time.Time{})
		case s.Isolated:
			add(l, KindSuspects, fmt.Sprintf("%d processes died: records below offset %d run one by one", s.Deaths, s.Below), time.Time{})
		case s.Deaths > 0:
			add(l, KindSuspects, fmt.Sprintf("a process died while it ran records below offset %d", s.Below), time.Time{})
		}
	}
	slices.SortStableFunc(all, func(a, b Trouble) int { return cmp.Compare(len(b.Partitions), len(a.Partitions)) })
	return all
}

// maxNamed bounds how many partitions a text names.
const maxNamed = 8

// Of names the partitions: "partition 3", "partitions 3, 7", "all 12 partitions".
func (t *Trouble) Of(partitions int) string {
	n := len(t.Partitions)
	switch {
	case n == 1:
		return fmt.Sprintf("partition %d", t.Partitions[0])
	case n == partitions:
		return fmt.Sprintf("all %d partitions", n)
	}
	var b strings.Builder
	b.WriteString("partitions ")
	for i, p := range t.Partitions[:min(n, maxNamed)] {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, p)
	}
	if n > maxNamed {
		fmt.Fprintf(&b, " and %d more", n-maxNamed)
	}
	return b.String()
}

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

// Parked returns how many records all tiers have parked, or Unknown.
func (u *Use) Parked() (n int64) {
	for _, t := range u.Tiers {
		n = sum(n, t.Parked)
	}
	return n
}

// NextDue returns when the first record of all tiers is due; zero if it is not known, or none is
// parked.
func (u *Use) NextDue() (at time.Time) {
	for _, t := range u.Tiers {
		switch {
		case t.Parked == 0:
		case t.NextDue.IsZero():
			return time.Time{}
		case at.IsZero() || t.NextDue.Before(at):
			at = t.NextDue
		}
	}
	return at
}
