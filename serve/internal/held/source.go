package held

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/sidingkafka/siding/internal/consumers"
	"github.com/sidingkafka/siding/serve/api"
)

// mostStalled bounds the groups that a topic names.
const mostStalled = 20

// source is what is known of the groups of a topic.
type source struct {
	groups      []api.Consumer
	guards      []api.Guard
	stalled     []api.Stalled
	standstills []Standstill
	version     uint64 // another one when something changes
}

func (s *source) add(c api.Consumer, is []Standstill) {
	s.groups, s.standstills = append(s.groups, c), append(s.standstills, is...)
	if c.Guard != nil {
		s.guards = append(s.guards, *c.Guard)
	}
	if c.Bad && c.State != consumers.HeldBack && c.State != consumers.Strained {
		s.stalled = append(s.stalled, api.Stalled{Group: c.Group, State: c.State, Text: c.Text, Lag: c.Lag})
	}
}

func (s *source) sort() {
	slices.SortFunc(s.guards, worst)
	bad := func(c *api.Consumer) int {
		if c.Bad {
			return 1
		}
		return 0
	}
	slices.SortFunc(s.groups, func(a, b api.Consumer) int {
		return cmp.Or(cmp.Compare(bad(&b), bad(&a)), cmp.Compare(or0(b.Lag), or0(a.Lag)), cmp.Compare(a.Group, b.Group))
	})
	slices.SortFunc(s.stalled, func(a, b api.Stalled) int {
		return cmp.Or(cmp.Compare(or0(b.Lag), or0(a.Lag)), cmp.Compare(a.Group, b.Group))
	})
	s.stalled = s.stalled[:min(len(s.stalled), mostStalled)]
	slices.SortFunc(s.standstills, func(a, b Standstill) int { return cmp.Compare(a.Group, b.Group) })
	h := fnv.New64a()
	_ = json.NewEncoder(h).Encode(s.groups) // numbers, times and texts
	s.version = h.Sum64()
}

// known is a number, nil if it is unknown.
func known(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}

// moment is a time in UTC, nil if it is not known.
func moment(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	at = at.UTC()
	return &at
}

// shown is a group on a topic as the API has it.
func shown(g *consumers.Group, u *consumers.Use) api.Consumer {
	is := api.Consumer{
		Group: g.Name, GroupState: g.State, Siding: u.Siding, Assigned: u.Assigned, Lag: known(u.Lag), Parked: known(u.Parked()), NextDue: moment(u.NextDue()),
		Releases: append([]string{}, u.Releases...), Members: []api.ConsumerMember{}, Troubles: []api.ConsumerTrouble{}, Tiers: []api.ConsumerTier{},
	}
	is.State, is.Bad = consumers.State(g, u)
	if u.Partitions >= 0 {
		is.Partitions = &u.Partitions
	}
	if u.Guard != nil {
		is.Guard = &api.Guard{Group: g.Name, State: Strained, Since: u.Guard.Since.UTC(), Class: u.Guard.Class, Partitions: u.Guard.Partitions, Of: u.Guard.Of, Waiting: known(u.Guard.Waiting)}
		if u.Guard.Held {
			is.Guard.State = Held
		}
	}
	var texts []string
	for _, t := range u.Troubles() {
		texts = append(texts, t.Of(u.Partitions)+": "+t.Text)
		is.Troubles = append(is.Troubles, api.ConsumerTrouble{Kind: t.Kind, Text: t.Text, Since: moment(t.Since), Partitions: t.Partitions, Lag: known(t.Lag)})
	}
	if is.Text = strings.Join(texts, "; "); is.State == consumers.NoMembers || is.State == consumers.NotRead {
		is.Text = strings.TrimSuffix(is.State+"; "+is.Text, "; ")
	}
	for _, m := range g.Members {
		if len(m.Partitions[u.Topic]) > 0 || len(g.Uses) == 1 {
			is.Members = append(is.Members, api.ConsumerMember{ID: m.ID, Instance: m.Instance, Client: m.Client, Host: m.Host, Releases: append([]string{}, m.Releases...), Partitions: append([]int32{}, m.Partitions[u.Topic]...)})
		}
	}
	for _, t := range u.Tiers {
		is.Tiers = append(is.Tiers, api.ConsumerTier{Topic: t.Topic, DelayMS: t.Delay.Milliseconds(), Parked: known(t.Parked), NextDue: moment(t.NextDue)})
	}
	return is
}

// Describe says in words that a group holds a topic.
func Describe(g *api.Guard, topic string) string {
	if g.State == Held {
		return fmt.Sprintf("group %s holds records of %s back", g.Group, topic)
	}
	return fmt.Sprintf("group %s runs records of %s in a strain", g.Group, topic)
}

func worst(a, b api.Guard) int {
	waiting := func(g *api.Guard) int64 {
		if g.Waiting == nil {
			return 0
		}
		return *g.Waiting
	}
	return cmp.Or(cmp.Compare(a.State, b.State), cmp.Compare(waiting(&b), waiting(&a)), cmp.Compare(a.Group, b.Group))
}
