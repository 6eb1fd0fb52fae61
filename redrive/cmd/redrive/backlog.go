package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

// A backlog is what a group has before it on a retry topic.
type backlog struct {
	group  any // nil: no group reads the topic
	parked any // nil: it is not known
	exact  any // whether the records were counted; else parked is the most that it can be. nil: parked is not known
}

// backlogs finds the groups that have committed on the topics, by which a tier belongs to a group, and what lies before
// each of them. What is complete above a group's floor is within.
func (s *session) backlogs(ctx context.Context, topics []string) (map[string][]backlog, []error) {
	if len(topics) == 0 {
		return nil, nil
	}
	var problems []error
	starts, err1 := s.admin.ListStartOffsets(ctx, topics...)
	stable, err2 := s.admin.ListCommittedOffsets(ctx, topics...)
	ends, err3 := s.admin.ListEndOffsets(ctx, topics...)
	why := cmp.Or(err1, err2, err3)
	groups, err := s.admin.ListGroups(ctx)
	if err != nil {
		problems = append(problems, fmt.Errorf("list groups: %w", err))
	}
	found := map[string][]backlog{}
	fetched := s.admin.FetchManyOffsets(ctx, groups.Groups()...)
	for _, group := range groups.Groups() {
		if r := fetched[group]; r.Err != nil {
			problems = append(problems, onGroup("DESCRIBE", group, r.Err))
		}
	}
	for _, topic := range topics {
		tier := stretch{topic: topic, stable: stable, ends: ends, why: why}
		for _, group := range groups.Groups() {
			if r := fetched[group]; r.Err == nil && len(r.Fetched[topic]) > 0 {
				tier.from = append(tier.from, positions(topic, r.Fetched, starts))
				found[topic] = append(found[topic], backlog{group: group})
			}
		}
		if len(found[topic]) == 0 {
			tier.from, found[topic] = []kadm.ListedOffsets{starts}, []backlog{{}}
		}
		counts, exact, err := s.count(ctx, tier)
		if err != nil {
			problems = append(problems, onTopic("DESCRIBE", topic, err))
			continue
		}
		for i, n := range counts {
			found[topic][i].parked, found[topic][i].exact = parkedText(n, exact), exact
		}
	}
	return found, problems
}

// parkedText is a number of records, of which a table says where it is only the most that it can be.
func parkedText(n int64, exact bool) any {
	if exact {
		return n
	}
	return output.Pair{Table: fmt.Sprintf("<= %d", n), JSON: n}
}

// A stretch is what lies on a topic between positions of some who read it and its end.
type stretch struct {
	topic        string
	from         []kadm.ListedOffsets
	stable, ends kadm.ListedOffsets // up to which transactions are over, and up to which there is something
	why          error              // what is missing is missing
}

// How much is read, and for how long, to count records instead of offsets, among which are the marks of transactions: what a run has
// brought back leaves one behind on each partition, which nobody ever commits past.
const (
	mostCounted  = 100_000 // offsets
	countingTime = 10 * time.Second
)

// count counts the records of a stretch, from each of its beginnings. What it does not read, since it is too much, may not, or is in
// a transaction that is open, it counts by offsets; then the counts are not exact.
func (s *session) count(ctx context.Context, of stretch) (counts []int64, exact bool, err error) {
	least := map[int32]int64{}
	for _, from := range of.from {
		n, err := between(of.topic, from, of.ends, of.why)
		if err != nil {
			return nil, false, err
		}
		counts = append(counts, *n)
		for p, o := range from[of.topic] {
			if at, ok := least[p]; !ok || o.Offset < at {
				least[p] = o.Offset
			}
		}
	}
	var ranges []dlq.Range
	var offsets int64
	exact = true
	for p, end := range of.ends[of.topic] {
		stable, ok := of.stable.Lookup(of.topic, p)
		if !ok || stable.Err != nil {
			return counts, false, nil
		}
		exact = exact && stable.Offset >= end.Offset
		if at, until := least[p], min(stable.Offset, end.Offset); at < until {
			ranges, offsets = append(ranges, dlq.Range{Partition: p, From: at, Until: until}), offsets+until-at
		}
	}
	switch {
	case offsets == 0:
		return counts, exact, nil
	case offsets > mostCounted:
		return counts, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, countingTime)
	defer cancel()
	there := make([]int64, len(of.from))
	for r, err := range dlq.Records(ctx, of.topic, ranges, s.opts...) {
		if err != nil {
			return counts, false, nil
		}
		for i, from := range of.from {
			if at, ok := from.Lookup(of.topic, r.Partition); ok && r.Offset >= at.Offset {
				there[i]++
			}
		}
	}
	// Of the offsets that were read, only as many count as have a record.
	for i, from := range of.from {
		for _, r := range ranges {
			at, _ := from.Lookup(of.topic, r.Partition)
			counts[i] -= max(0, r.Until-max(at.Offset, r.From))
		}
		counts[i] += there[i]
	}
	return counts, exact, nil
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
