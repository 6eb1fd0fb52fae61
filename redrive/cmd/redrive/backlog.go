package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
)

// A backlog is what a group has before it on a retry topic.
type backlog struct {
	group  any // nil: no group reads the topic
	parked any // nil: it is not known
}

// backlogs finds the groups that have committed on the topics, by which a tier belongs to a group, and what lies before
// each of them. It counts offsets: what is complete above a group's floor is within, so this is the most it can be.
func (s *session) backlogs(ctx context.Context, topics []string) (map[string][]backlog, []error) {
	if len(topics) == 0 {
		return nil, nil
	}
	var problems []error
	starts, err1 := s.admin.ListStartOffsets(ctx, topics...)
	ends, err2 := s.admin.ListEndOffsets(ctx, topics...)
	why := cmp.Or(err1, err2)
	groups, err := s.admin.ListGroups(ctx)
	if err != nil {
		problems = append(problems, fmt.Errorf("list groups: %w", err))
	}
	found := map[string][]backlog{}
	fetched := s.admin.FetchManyOffsets(ctx, groups.Groups()...)
	for _, group := range groups.Groups() {
		r := fetched[group]
		if r.Err != nil {
			problems = append(problems, onGroup("DESCRIBE", group, r.Err))
			continue
		}
		for _, topic := range topics {
			if len(r.Fetched[topic]) == 0 {
				continue
			}
			parked, err := between(topic, positions(topic, r.Fetched, starts), ends, why)
			if err != nil {
				problems = append(problems, onTopic("DESCRIBE", topic, err))
			}
			found[topic] = append(found[topic], backlog{group: group, parked: known(parked)})
		}
	}
	for _, topic := range topics {
		if len(found[topic]) > 0 {
			continue
		}
		all, err := between(topic, starts, ends, why)
		if err != nil {
			problems = append(problems, onTopic("DESCRIBE", topic, err))
		}
		found[topic] = []backlog{{parked: known(all)}}
	}
	return found, problems
}

// positions are where a group stands on a topic. Where it has committed nothing it begins at the start, as siding's
// consumers do on their tiers.
func positions(topic string, committed kadm.OffsetResponses, starts kadm.ListedOffsets) kadm.ListedOffsets {
	at := map[int32]kadm.ListedOffset{}
	for p, o := range starts[topic] {
		if c, ok := committed.Lookup(topic, p); ok && c.Err == nil && c.At >= 0 {
			o.Offset = c.At
		}
		at[p] = o
	}
	return kadm.ListedOffsets{topic: at}
}

// sortTiers puts a source's tiers in the order in which a record goes through them.
func sortTiers(tiers []sibling) {
	slices.SortFunc(tiers, func(a, b sibling) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Delay, b.Delay))
	})
}
