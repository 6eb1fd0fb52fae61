package look

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/reserved"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/subject"
	"github.com/sidingkafka/siding/retrytopics"
)

// A backlog is the records of a retry topic that a group has not finished.
type backlog struct {
	group  any // nil if no group reads the topic
	parked any // nil if it is not known
	exact  any // whether parked is exact or an upper bound; nil if parked is not known

	from kadm.ListedOffsets // where the group is
}

// readBacklogs finds the groups that have committed offsets on the topics, and the backlog of each.
// A record that names a group is in that group's backlog alone: groups may share a topic, and a
// consumer passes over the records of other groups. It counts finished records above a group's
// committed offset too.
func readBacklogs(ctx context.Context, s *cli.Session, topics []string) (map[string][]backlog, []error) {
	if len(topics) == 0 {
		return nil, nil
	}
	var problems []error
	starts, err1 := s.Admin.ListStartOffsets(ctx, topics...)
	stable, err2 := s.Admin.ListCommittedOffsets(ctx, topics...)
	ends, err3 := s.Admin.ListEndOffsets(ctx, topics...)
	why := cmp.Or(err1, err2, err3)
	groups, err := s.Admin.ListGroups(ctx)
	if err != nil {
		problems = append(problems, fmt.Errorf("list groups: %w", err))
	}
	found := map[string][]backlog{}
	fetched := s.Admin.FetchManyOffsets(ctx, groups.Groups()...)
	for _, group := range groups.Groups() {
		if r := fetched[group]; r.Err != nil {
			problems = append(problems, cli.OnResource("DESCRIBE", "group", group, r.Err))
		}
	}
	for _, topic := range topics {
		for _, group := range groups.Groups() {
			if r := fetched[group]; r.Err == nil && len(r.Fetched[topic]) > 0 {
				found[topic] = append(found[topic], backlog{group: group, from: positions(topic, r.Fetched, starts)})
			}
		}
		if len(found[topic]) == 0 {
			found[topic] = []backlog{{from: starts}}
		}
		for i := range found[topic] {
			b := &found[topic][i]
			total, err := between(topic, b.from, ends, why)
			if err != nil {
				problems = append(problems, cli.OnTopic("DESCRIBE", topic, err))
				break
			}
			others, exact := countOthers(ctx, s, topic, b, stable, ends)
			b.parked, b.exact = total-others, exact
			if !exact { // JSON has a field for it
				b.parked = output.Pair{Table: fmt.Sprintf("<= %d", total-others), JSON: total - others}
			}
		}
	}
	return found, problems
}

// countOthers counts the offsets from a group's positions on that hold no record for the group:
// records of other groups, and the marks of transactions. A run leaves a mark on each partition
// behind its last record, and no group commits past it. countOthers reads the records for that.
// Where there are too many, where the user may not read them or where a transaction is open, exact
// is false.
func countOthers(ctx context.Context, s *cli.Session, topic string, b *backlog, stable, ends kadm.ListedOffsets) (n int64, exact bool) {
	const (
		mostRead    = 100_000 // offsets
		readingTime = 10 * time.Second
	)
	var ranges []dlq.Range
	exact = true
	for p, end := range ends[topic] {
		at, _ := b.from.Lookup(topic, p)
		over, ok := stable.Lookup(topic, p)
		if !ok || over.Err != nil {
			return 0, false
		}
		exact = exact && over.Offset >= end.Offset
		if until := min(over.Offset, end.Offset); at.Offset < until {
			ranges, n = append(ranges, dlq.Range{Partition: p, From: at.Offset, Until: until}), n+until-at.Offset
		}
	}
	switch {
	case n == 0: // without ranges all would be read
		return 0, exact
	case n > mostRead:
		return 0, false
	}
	ctx, cancel := context.WithTimeout(ctx, readingTime)
	defer cancel()
	for r, err := range dlq.Records(ctx, topic, ranges, s.Kafka...) {
		if err != nil {
			return 0, false
		}
		// each group runs a record that names none, and dead-letters it as malformed
		if group, _, _ := reserved.Peek(r.Headers); len(group) == 0 || b.group == nil || string(group) == b.group {
			n--
		}
	}
	return n, exact
}

// positions is a group's offsets on a topic. Without a committed offset the group begins at the
// start, as siding's consumers do on their tiers.
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

func listParked(ctx context.Context, s *cli.Session, how survey) error {
	tiers, err := how.choose(ctx, s, retrytopics.KindRetry)
	if err != nil {
		return err
	}
	// the order in which a record passes them
	slices.SortFunc(tiers, func(a, b subject.Sibling) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Delay, b.Delay))
	})
	backlogs, problems := readBacklogs(ctx, s, subject.Names(tiers))
	field, rows := output.NewField, output.Rows{}
	for _, tier := range tiers {
		for _, b := range backlogs[tier.Topic] {
			rows = append(rows, []output.Field{
				field("topic", "TOPIC", tier.Topic),
				field("source", "SOURCE", tier.Source),
				field("delayMs", "DELAY", tier.Delay),
				field("partitions", "PARTITIONS", tier.Partitions).Right(),
				field("group", "GROUP", b.group),
				field("parked", "PARKED", b.parked).Right(),
				field("exact", "", b.exact),
			})
		}
	}
	err = s.Screen.Rows(rows)
	warnOfProblems(s.Tool, problems)
	return err
}
