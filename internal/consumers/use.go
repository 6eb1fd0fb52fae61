package consumers

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/sidingkafka/siding/internal/commitmark"
	"github.com/sidingkafka/siding/internal/guards"
)

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
