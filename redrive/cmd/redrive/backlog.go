package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// A backlog is what a group has before it on a retry topic.
type backlog struct {
	group  any // nil: no group reads the topic
	parked int64
}

// backlogs finds the groups that have committed on the topics, by which a tier belongs to a group, and what lies before
// each of them. It counts offsets: what is complete above a group's floor is within, so this is the most it can be.
func (s *session) backlogs(ctx context.Context, topics []string) (map[string][]backlog, []error) {
	if len(topics) == 0 {
		return nil, nil
	}
	var problems []error
	starts, err := s.admin.ListStartOffsets(ctx, topics...)
	if err != nil {
		problems = append(problems, fmt.Errorf("list offsets: %w", err))
	}
	ends, err := s.admin.ListEndOffsets(ctx, topics...)
	if err != nil {
		problems = append(problems, fmt.Errorf("list offsets: %w", err))
	}
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
			var parked int64
			for p, end := range ends[topic] {
				at := end.Offset
				if o, ok := r.Fetched.Lookup(topic, p); ok && o.Err == nil && o.At >= 0 {
					at = o.At
				} else if start, ok := starts.Lookup(topic, p); ok {
					at = start.Offset // a group begins its tiers at their start
				}
				parked += max(0, end.Offset-at)
			}
			found[topic] = append(found[topic], backlog{group: group, parked: parked})
		}
	}
	for _, topic := range topics {
		if len(found[topic]) > 0 {
			continue
		}
		all, err := between(topic, starts, ends)
		if err != nil {
			problems = append(problems, onTopic("DESCRIBE", topic, err))
			continue
		}
		found[topic] = []backlog{{parked: *all}}
	}
	return found, problems
}

// sortTiers puts a source's tiers in the order in which a record goes through them.
func sortTiers(tiers []sibling) {
	slices.SortFunc(tiers, func(a, b sibling) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Delay, b.Delay))
	})
}
