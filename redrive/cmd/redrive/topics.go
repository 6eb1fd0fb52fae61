package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/retrytopics"
)

func newTopics(t *tool) *cobra.Command {
	var parked, quick bool
	cmd := &cobra.Command{
		Use:   "topics",
		Short: "List the dead-letter topics of the cluster, or the retry topics",
		Long: `Topics lists the cluster's dead-letter topics, as far as their names follow the naming: how many letters they hold,
how many came within the last hour, and when retention may delete the next one. Both counts are by offsets, so marks
of transactions count too. Retention deletes a letter later while younger letters share its segment.

Topics also reads the topics and their ledgers: how many letters are open or resolved, when the oldest open one was
written, the most frequent class, and the groups that failed. --quick skips this, and takes no time.

With --parked it lists the retry topics instead, a line for each consumer group that reads one: how many records the
group has before it, waiting or due. It counts offsets instead, among them marks of transactions, if there are more
than 100,000 or the user may not read them: <= marks such a number (exact is false in JSON).`,
		Example: `  redrive topics
  redrive topics --quick
  redrive topics --parked
  redrive topics -o json | jq '.[] | select(.lastHour > 0) | .topic'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return t.with(cmd.Context(), func(s *session) error {
				if parked {
					return t.listParked(cmd.Context(), s)
				}
				return t.listDeadLetterTopics(cmd.Context(), s, quick)
			})
		},
	}
	cmd.Flags().BoolVar(&parked, "parked", false, "the retry topics, with the records that each group has parked there")
	cmd.Flags().BoolVar(&quick, "quick", false, "only what the brokers know, without reading the topics")
	cmd.MarkFlagsMutuallyExclusive("parked", "quick")
	return cmd
}

// topicColumns are the same in JSON, whether the topics were read or not. A table has no columns for what was not asked for.
func topicColumns(quick bool) []output.Column {
	columns := []output.Column{
		{Key: "topic", Title: "TOPIC"},
		{Key: "source"},
		{Key: "sourceGone"},
		{Key: "partitions"},
		{Key: "letters"},
		{Key: "open", Title: "OPEN", Right: true},
		{Key: "resolved", Title: "RESOLVED", Right: true, Spare: 5},
		{Key: "oldestOpen", Title: "OLDEST OPEN", Spare: 1},
		{Key: "topClass", Title: "TOP CLASS"},
		{Key: "groups", Title: "GROUPS", Cut: true, Spare: 3},
		{Key: "lastHour", Title: "LAST HOUR", Right: true, Spare: 2},
		{Key: "retentionMs", Title: "KEPT FOR", Spare: 6},
		{Key: "nextExpiry", Title: "NEXT EXPIRY", Spare: 4},
	}
	if quick {
		columns[4].Title, columns[4].Right = "LETTERS", true
		for i := range columns[5:10] {
			columns[5+i].Title = ""
		}
	}
	return columns
}

func (t *tool) listDeadLetterTopics(ctx context.Context, s *session, quick bool) error {
	all, err := s.admin.ListTopics(ctx)
	if err != nil {
		return fmt.Errorf("list topics: %w", err)
	}
	found := siblings(all, s.Naming, retrytopics.KindDLQ)
	if len(found) == 0 {
		t.screen.Say("no dead-letter topics are named like %s, or this user may see none", templateOf(s.Naming, retrytopics.KindDLQ))
	}
	stocks, problems := s.topicStats(ctx, names(found), t.now())
	sourceGone := s.gone(ctx, found)
	list := t.screen.List(topicColumns(quick)...)
	for _, f := range found {
		stock := stocks[f.topic]
		cells := make([]any, 5)
		if !quick {
			if cells, err = t.openCells(ctx, s, f); err != nil {
				if ctx.Err() != nil {
					return errors.Join(err, list.Close())
				}
				problems = append(problems, err)
			}
		}
		name := output.Pair{Table: f.topic, JSON: f.topic}
		var gone any
		if is, ok := sourceGone[f.Source]; ok {
			gone = is
		}
		if gone == true {
			name.Table += " (its source is gone)"
		}
		row := slices.Concat(
			[]any{name, f.Source, gone, f.partitions, stock.total}, cells,
			[]any{stock.recent, stock.kept(), stock.expiry(t.now())})
		if err := list.Row(row...); err != nil {
			return err
		}
	}
	return t.closeList(list, problems)
}

// openCells are what only reading a topic and its ledger tells: how many letters are open and resolved, when the oldest open
// one was written, what most of them failed with, and whose they are. All are nil where not all could be read.
func (t *tool) openCells(ctx context.Context, s *session, f sibling) ([]any, error) {
	none := make([]any, 5)
	ledger, err := t.readLedger(ctx, s, f, toCount)
	if err != nil {
		return none, err
	}
	sum, err := ledger.Summarize(ctx, dlq.Filter{}, dlq.Cursor{}, t.progress("reading "+f.topic))
	t.screen.Status("")
	if err != nil {
		return none, readFailed(f.topic, err)
	}
	var oldest, class any
	if p, ok := sum.Oldest(); ok {
		oldest = output.Ago(p.Oldest)
	}
	if c, ok := topClass(sum); ok {
		class = c
	}
	groups := []string{}
	for _, g := range sum.Groups {
		switch {
		case g.Folded:
			groups = append(groups, "(other)")
		case g.Group != "":
			groups = append(groups, g.Group)
		}
	}
	return []any{sum.Open, sum.Resolved, oldest, class, groups}, nil
}

// topClass is the class that most open letters have, whatever their fingerprints; of several the first by name.
func topClass(sum *dlq.Summary) (string, bool) {
	counts := map[string]int64{}
	for _, f := range sum.Failures {
		if f.Class != "" {
			counts[f.Class] += f.Count
		}
	}
	classes := slices.Sorted(maps.Keys(counts))
	if len(classes) == 0 {
		return "", false
	}
	return slices.MaxFunc(classes, func(a, b string) int { return cmp.Compare(counts[a], counts[b]) }), true
}

var parkedColumns = []output.Column{
	{Key: "topic", Title: "TOPIC"},
	{Key: "source", Title: "SOURCE"},
	{Key: "delayMs", Title: "DELAY"},
	{Key: "partitions", Title: "PARTITIONS", Right: true},
	{Key: "group", Title: "GROUP"},
	{Key: "parked", Title: "PARKED", Right: true},
	{Key: "exact"},
}

func (t *tool) listParked(ctx context.Context, s *session) error {
	all, err := s.admin.ListTopics(ctx)
	if err != nil {
		return fmt.Errorf("list topics: %w", err)
	}
	tiers := siblings(all, s.Naming, retrytopics.KindRetry)
	sortTiers(tiers)
	if len(tiers) == 0 {
		t.screen.Say("no retry topics are named like %s, or this user may see none", templateOf(s.Naming, retrytopics.KindRetry))
	}
	backlogs, problems := s.backlogs(ctx, names(tiers))
	list := t.screen.List(parkedColumns...)
	for _, tier := range tiers {
		for _, b := range backlogs[tier.topic] {
			if err := list.Row(tier.topic, tier.Source, tier.Delay, tier.partitions, b.group, b.parked, b.exact); err != nil {
				return err
			}
		}
	}
	return t.closeList(list, problems)
}

// closeList ends a list, and warns of what is not in it.
func (t *tool) closeList(list *output.List, problems []error) error {
	if err := list.Close(); err != nil {
		return err
	}
	for _, p := range problems {
		t.screen.Warn("%v", p)
	}
	return nil
}
