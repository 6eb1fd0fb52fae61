package held

import (
	"fmt"
	"strings"
	"time"

	"github.com/sidingkafka/siding/internal/consumers"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/number"
)

// The states of a guard in the API.
const (
	Held     = "held"
	Strained = "strained"
)

// The kinds of standstills, as alerts name them.
const (
	KindHeld    = "held"
	KindBlocked = "blocked"
	KindGone    = "gone"
)

// Standstill is a reason why records of a topic do not run in a group.
type Standstill struct {
	Kind, Group string
	Text        string // with the group's name
	// Since is when it began, as the group says, or when this watch saw it first, if that is
	// earlier.
	Since time.Time
}

// standstillsOf returns what keeps a group's records from running, without the times.
func standstillsOf(c *api.Consumer) (all []Standstill) {
	if c.Guard != nil && c.Guard.State == Held {
		s := Standstill{Kind: KindHeld, Group: c.Group, Text: "group " + c.Group + " holds records back", Since: c.Guard.Since}
		if c.Guard.Class != "" {
			s.Text += ", most failures are " + c.Guard.Class
		}
		all = append(all, s)
	}
	var blocked Standstill
	var texts []string
	for i := range c.Troubles {
		t := &c.Troubles[i]
		if t.Kind != consumers.KindBlocked && t.Kind != consumers.KindUnassigned {
			continue
		}
		texts = append(texts, fmt.Sprintf("%s (%s)", t.Text, number.Of(int64(len(t.Partitions)), "partition")))
		if t.Since != nil && (blocked.Since.IsZero() || t.Since.Before(blocked.Since)) {
			blocked.Since = *t.Since
		}
	}
	if len(texts) > 0 {
		blocked.Kind, blocked.Group, blocked.Text = KindBlocked, c.Group, "records do not run in group "+c.Group+": "+strings.Join(texts, "; ")
		all = append(all, blocked)
	}
	if c.State == consumers.NoMembers && c.Siding && or0(c.Lag)+or0(c.Parked) > 0 {
		all = append(all, Standstill{Kind: KindGone, Group: c.Group, Text: "group " + c.Group + " has no members, and records wait for it"})
	}
	return all
}

// standstills returns those of a group as a look at a time saw it. before are those of the look
// before.
func standstills(c *api.Consumer, before []Standstill, now time.Time) []Standstill {
	all := standstillsOf(c)
	for i := range all {
		s, first := &all[i], now
		for _, b := range before {
			if b.Kind == s.Kind {
				first = b.Since
			}
		}
		if s.Since.IsZero() || first.Before(s.Since) {
			s.Since = first
		}
	}
	return all
}

func or0(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
