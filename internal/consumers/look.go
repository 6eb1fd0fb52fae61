package consumers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/commitmark"
	"github.com/sidingkafka/siding/internal/guards"
	"github.com/sidingkafka/siding/retrytopics"
)

// Ask says whom to look at.
type Ask struct {
	// Topics are source topics. Without any, those on which the groups have committed count that
	// are no siblings.
	Topics []string
	// Groups are the groups. Without any, all count that have committed on the topics, and those
	// that have committed nowhere and have a partition of them.
	Groups []string
	Naming retrytopics.Naming
}

// looking is a look.
type looking struct {
	Ask
	adm      *kadm.Client
	errs     []error
	kinds    map[string]string // types of groups, as brokers list them
	commits  map[string]kadm.OffsetResponses
	seen     map[string]described
	ends     kadm.ListedOffsets
	hidden   []string
	asked    map[string]bool // of Topics
	uses     map[string][]string
	siblings map[[2]string][]retrytopics.Tier // by group and topic
}

// Look looks at groups and topics. It lists the groups, and asks each coordinator for all that it
// has, and each leader for the ends of its logs: so many requests as there are brokers, however
// many groups. The error is about a part of it; the rest is returned beside it.
func Look(ctx context.Context, cl *kgo.Client, ask Ask) (Seen, error) {
	l := &looking{
		Ask: ask, adm: kadm.NewClient(cl), kinds: map[string]string{}, commits: map[string]kadm.OffsetResponses{},
		asked: map[string]bool{}, uses: map[string][]string{}, siblings: map[[2]string][]retrytopics.Tier{},
	}
	for _, t := range ask.Topics {
		l.asked[t] = true
	}
	groups := slices.Clone(ask.Groups)
	if len(groups) == 0 {
		listed, err := l.adm.ListGroups(ctx)
		if err != nil {
			l.errs = append(l.errs, fmt.Errorf("list groups: %w", err))
		}
		for _, g := range listed {
			if g.ProtocolType == "consumer" || g.ProtocolType == "" {
				groups, l.kinds[g.Group] = append(groups, g.Group), g.GroupType
			}
		}
	}
	groups = l.fetch(ctx, groups)
	l.seen = describe(ctx, cl, groups, l.kinds)
	topics := l.topics()
	ends, err := l.adm.ListEndOffsets(ctx, topics...)
	if err != nil && len(topics) > 0 {
		l.errs = append(l.errs, fmt.Errorf("list end offsets: %w", err))
	}
	l.ends = ends
	found := Seen{Hidden: l.hidden}
	slices.Sort(groups)
	for _, name := range groups {
		if g := l.group(name); len(g.Uses) > 0 || len(ask.Groups) > 0 {
			found.Groups = append(found.Groups, g)
		}
	}
	return found, errors.Join(l.errs...)
}

// fetch reads what the groups have committed, and returns those that may matter.
func (l *looking) fetch(ctx context.Context, groups []string) (matter []string) {
	for name, r := range l.adm.FetchManyOffsets(ctx, groups...) {
		switch {
		case errors.Is(r.Err, kerr.GroupAuthorizationFailed) || isAuth(r.Err):
			l.hidden = append(l.hidden, name)
			continue
		case r.Err != nil && !errors.Is(r.Err, kerr.GroupIDNotFound):
			l.errs = append(l.errs, fmt.Errorf("fetch offsets of group %q: %w", name, r.Err))
			continue
		}
		l.commits[name] = r.Fetched
		if len(l.Groups) > 0 || len(r.Fetched) == 0 || l.isOn(r.Fetched) {
			matter = append(matter, name)
		}
	}
	slices.Sort(l.hidden)
	return matter
}

// isOn reports whether there are commits on a topic that was asked for.
func (l *looking) isOn(commits kadm.OffsetResponses) bool {
	for topic, of := range commits {
		if l.asked[topic] && len(of) > 0 {
			return true
		}
	}
	return false
}

func isAuth(err error) bool {
	_, ok := errors.AsType[*kadm.AuthError](err)
	return ok
}

// used returns the source topics that a group uses.
func (l *looking) used(group string) (topics []string) {
	if known, ok := l.uses[group]; ok {
		return known
	}
	has := map[string]bool{}
	for t := range l.commits[group] {
		has[t] = true
	}
	for _, m := range l.seen[group].members {
		for t := range m.Partitions {
			has[t] = true
		}
	}
	for t := range has {
		if t != "" && (l.asked[t] || len(l.asked) == 0 && !l.isSibling(t)) {
			topics = append(topics, t)
		}
	}
	slices.Sort(topics)
	l.uses[group] = topics
	return topics
}

// topics returns the topics whose ends matter: those that groups use, and their tiers.
func (l *looking) topics() []string {
	all := map[string]bool{}
	for group := range l.seen {
		for _, t := range l.used(group) {
			all[t] = true
			for _, tier := range l.tiers(group, t) {
				all[tier.Topic] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func (l *looking) isSibling(topic string) bool {
	_, is := l.Naming.Parse(topic)
	return is
}

func (l *looking) tiers(group, topic string) []retrytopics.Tier {
	of := [2]string{group, topic}
	known, ok := l.siblings[of]
	if !ok {
		known = l.Naming.TiersAmong(slices.Collect(maps.Keys(l.commits[group])), topic, group)
		l.siblings[of] = known
	}
	return known
}

// group returns a group with what it does with the topics.
func (l *looking) group(name string) Group {
	d := l.seen[name]
	g := Group{Name: name, State: d.state, Undescribed: d.err}
	if errors.Is(d.err, kerr.GroupIDNotFound) {
		g.State, g.Undescribed = "Dead", nil
	}
	owners := map[string]map[int32]string{}
	topics := l.used(name)
	for _, m := range d.members {
		has := map[string][]int32{}
		for _, t := range topics {
			if ps := m.Partitions[t]; len(ps) > 0 {
				has[t] = ps
			}
			for _, p := range m.Partitions[t] {
				if owners[t] == nil {
					owners[t] = map[int32]string{}
				}
				owners[t][p] = m.ID
				if at, ok := l.commits[name].Lookup(t, p); ok {
					m.Releases = append(m.Releases, commitmark.ParseLane(at.Metadata, at.At).Release)
				}
			}
		}
		m.Partitions, m.Releases = has, distinct(m.Releases)
		g.Members = append(g.Members, m)
	}
	for _, t := range topics {
		g.Uses = append(g.Uses, l.use(&g, t, owners[t]))
	}
	return g
}

// distinct returns the texts that are not empty, each once.
func distinct(all []string) []string {
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(s string) bool { return s == "" })
}

// use returns what a group does with a topic, whose partitions have these owners.
func (l *looking) use(g *Group, topic string, owners map[int32]string) Use {
	commits, ends := l.commits[g.Name][topic], l.ends[topic]
	u := Use{Topic: topic, Partitions: Unknown, Assigned: len(owners)}
	if len(ends) > 0 {
		u.Partitions = len(ends)
	}
	for _, o := range commits {
		u.Siding = u.Siding || o.Err == nil && commitmark.Marked(o.Metadata)
	}
	if guard := guards.Of(commits, ends); guard.Partitions > 0 {
		guard.Group, guard.Topic = g.Name, topic
		u.Guard = &guard
	}
	partitions := map[int32]bool{}
	for p := range commits {
		partitions[p] = true
	}
	for p := range ends {
		partitions[p] = true
	}
	tiers := l.tiers(g.Name, topic)
	balanced := len(g.Members) > 0 && g.State == "Stable"
	for _, p := range slices.Sorted(maps.Keys(partitions)) {
		lane := l.lane(g.Name, topic, p, tiers)
		lane.Member = owners[p]
		lane.Uncommitted = u.Siding && lane.Member != "" && !commitmark.Marked(commits[p].Metadata)
		lane.Unassigned = balanced && lane.Member == "" && len(owners) > 0
		u.Lag, u.Releases = sum(u.Lag, lane.Lag), append(u.Releases, lane.Release)
		if lane.Says() {
			u.Lanes = append(u.Lanes, lane)
		}
	}
	if len(partitions) == 0 {
		u.Lag = Unknown
	}
	for _, t := range tiers {
		u.Tiers = append(u.Tiers, l.tier(g.Name, &t))
	}
	u.Releases = distinct(u.Releases)
	return u
}

// lane returns what commits say of a partition, and of the same one of the tiers.
func (l *looking) lane(group, topic string, partition int32, tiers []retrytopics.Tier) Lane {
	lane := Lane{Partition: partition, Lag: l.behind(group, topic, partition)}
	if at, ok := l.commits[group].Lookup(topic, partition); ok && at.Err == nil {
		lane.Lane, lane.Suspects = commitmark.ParseLane(at.Metadata, at.At), commitmark.ParseSuspects(at.Metadata, at.At)
	}
	for _, tier := range tiers {
		at := l.commits[group][tier.Topic][partition]
		if s := commitmark.ParseSuspects(at.Metadata, at.At); s.Deaths > lane.Suspects.Deaths {
			lane.Suspects = s
		}
	}
	return lane
}

func (l *looking) tier(group string, t *retrytopics.Tier) Tier {
	tier := Tier{Topic: t.Topic, Delay: t.Delay, from: map[int32]int64{}}
	for p := range l.ends[t.Topic] {
		behind := l.behind(group, t.Topic, p)
		if tier.Parked = sum(tier.Parked, behind); behind > 0 {
			tier.from[p] = l.commits[group][t.Topic][p].At
		}
	}
	if len(l.ends[t.Topic]) == 0 {
		tier.Parked = Unknown
	}
	return tier
}

// behind returns how many offsets lie between a group's commit and the log's end, or Unknown.
func (l *looking) behind(group, topic string, partition int32) int64 {
	end, ok := l.ends.Lookup(topic, partition)
	if !ok || end.Err != nil {
		return Unknown
	}
	at, ok := l.commits[group].Lookup(topic, partition)
	if end.Offset == 0 {
		return 0
	}
	if !ok || at.Err != nil || at.At < 0 {
		return Unknown
	}
	return max(0, end.Offset-at.At)
}
