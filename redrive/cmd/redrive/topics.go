package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

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
		Long: `Topics lists the cluster's dead-letter topics, as far as their names follow the naming. It shows how many letters they
hold, how many came within the last hour, and when retention may delete the next one. Both counts are by offsets, so
transaction markers count too. Retention deletes a letter later while younger letters share its segment.

Topics also reads the topics and their ledgers. From these it shows how many letters are open or resolved, when the
oldest open one was written, the most frequent class, and the groups that failed. --quick omits this, and reads nothing.

With --parked it lists the retry topics instead, a line for each consumer group that reads one. The line has the number
of records that are parked there for the group, waiting or due. Beyond 100,000 records, or if the user may not read
them, it counts offsets, transaction markers included: <= marks such a number (exact is false in JSON).`,
		Example: `  redrive topics
  redrive topics --quick
  redrive topics --parked
  redrive topics -o json | jq '.[] | select(.lastHour > 0) | .topic'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var both error
			if parked && quick {
				both = errors.New("--parked and --quick: retry topics are not read, so omit one")
			}
			return t.with(cmd.Context(), func(s *session) error {
				if parked {
					return listParked(cmd.Context(), s)
				}
				return listDeadLetterTopics(cmd.Context(), s, quick)
			}, both)
		},
	}
	cmd.Flags().BoolVar(&parked, "parked", false, "the retry topics, with the records that each group has parked there")
	cmd.Flags().BoolVar(&quick, "quick", false, "only what the brokers know, without reading the topics")
	return cmd
}

func listDeadLetterTopics(ctx context.Context, s *session, quick bool) error {
	all, err := s.admin.ListTopics(ctx)
	if err != nil {
		return fmt.Errorf("list topics: %w", err)
	}
	found := siblings(all, s.Naming, retrytopics.KindDLQ)
	if len(found) == 0 {
		s.screen.Say("no dead-letter topics are named like %s, or this user may see none", templateOf(s.Naming, retrytopics.KindDLQ))
	}
	stats, problems := readTopicStats(ctx, s, names(found), s.now())
	sourceGone := missingSources(ctx, s, found)
	list := s.screen.List()
	for _, f := range found {
		var contents topicContents
		if !quick {
			if contents, err = readContents(ctx, s, f); err != nil {
				if ctx.Err() != nil {
					return errors.Join(err, list.Close())
				}
				problems = append(problems, err)
			}
		}
		if err := list.Row(topicFields(f, sourceGone[f.Source], stats[f.topic], contents, s.now(), quick)...); err != nil {
			return err
		}
	}
	err = list.Close()
	warnOfProblems(s.tool, problems)
	return err
}

// topicFields are a topic as a row. JSON has the same fields, whether the topic was read or not. A
// table has no columns for what was not asked for.
func topicFields(f sibling, sourceGone any, stats topicStats, contents topicContents, now time.Time, quick bool) []output.Field {
	name := output.Pair{Table: f.topic, JSON: f.topic}
	if sourceGone == true {
		name.Table += " (its source is gone)"
	}
	unless := func(omitted bool, title string) string {
		if omitted {
			return ""
		}
		return title
	}
	field := output.NewField
	return []output.Field{
		field("topic", "TOPIC", name),
		field("source", "", f.Source),
		field("sourceGone", "", sourceGone),
		field("partitions", "", f.partitions),
		field("letters", unless(!quick, "LETTERS"), stats.total).Right(),
		field("open", unless(quick, "OPEN"), contents.open).Right(),
		field("pending", unless(quick, "PENDING"), contents.pending).Right().Spare(4),
		field("resolved", unless(quick, "RESOLVED"), contents.resolved).Right().Spare(5),
		field("oldestOpen", unless(quick, "OLDEST OPEN"), contents.oldestOpen).Spare(1),
		field("topClass", unless(quick, "TOP CLASS"), contents.topClass),
		field("groups", unless(quick, "GROUPS"), contents.groups).MayCut().Spare(3),
		field("lastHour", "LAST HOUR", stats.recent).Right().Spare(2),
		field("retentionMs", "KEPT FOR", stats.kept()).Spare(6),
		field("nextExpiry", "NEXT EXPIRY", stats.expiry(now)).Spare(4),
	}
}

// topicContents are cells that only reading a topic and its ledger can fill. All are nil where not
// all could be read.
type topicContents struct{ open, pending, resolved, oldestOpen, topClass, groups any }

func readContents(ctx context.Context, s *session, f sibling) (topicContents, error) {
	ledger, err := readLedger(ctx, s, f, toCount)
	if err != nil {
		return topicContents{}, err
	}
	sum, err := ledger.Summarize(ctx, dlq.Filter{}, dlq.Cursor{}, progress(s.tool, "reading "+f.topic))
	if err != nil {
		return topicContents{}, readFailed(f.topic, err)
	}
	oldest, _ := sum.Oldest()
	groups := []string{}
	for _, g := range sum.Groups {
		switch {
		case g.Folded:
			groups = append(groups, "(other)")
		case g.Group != "":
			groups = append(groups, g.Group)
		}
	}
	return topicContents{sum.Open, sum.Pending, sum.Resolved, output.Ago(oldest.Oldest), orNil(topClass(sum)), groups}, nil
}

// topClass is the class of the most open letters, whatever their fingerprints; of several classes
// the first by name, and empty where none has one.
func topClass(sum *dlq.Summary) (top string) {
	counts := map[string]int64{}
	for _, f := range sum.Failures {
		counts[f.Class] += f.Count
	}
	delete(counts, "")
	for class, n := range counts {
		if cmp.Or(cmp.Compare(n, counts[top]), cmp.Compare(top, class)) > 0 {
			top = class
		}
	}
	return top
}

// warnOfProblems warns of what a list could not show.
func warnOfProblems(t *tool, problems []error) {
	for _, p := range problems {
		t.screen.Warn("%v", p)
	}
}
