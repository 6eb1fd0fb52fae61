package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/retrytopics"
)

func newTopics(t *tool) *cobra.Command {
	var parked bool
	cmd := &cobra.Command{
		Use:   "topics",
		Short: "List the dead-letter topics of the cluster, or the retry topics",
		Long: `Topics lists the cluster's dead-letter topics, as far as their names can be read backwards: how many letters
they hold and how many came within the last hour (both by offsets, so marks of transactions count too), and when
retention may take the next one: not before that, and later while younger letters share its segment.

With --parked it lists the retry topics instead, a line for each consumer group that reads one: how many records
lie before the group, waiting or due.`,
		Example: `  redrive topics
  redrive topics --parked
  redrive topics -o json | jq '.[] | select(.lastHour > 0) | .topic'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := t.connect(cmd.Context())
			if err != nil {
				return err
			}
			defer s.close()
			if parked {
				return t.listParked(cmd.Context(), s)
			}
			return t.listDeadLetterTopics(cmd.Context(), s)
		},
	}
	cmd.Flags().BoolVar(&parked, "parked", false, "the retry topics, with the records that each group has parked there")
	return cmd
}

var topicColumns = []output.Column{
	{Key: "topic", Title: "TOPIC"},
	{Key: "source", Title: "SOURCE"},
	{Key: "sourceGone"},
	{Key: "partitions", Title: "PARTITIONS", Right: true},
	{Key: "letters", Title: "LETTERS", Right: true},
	{Key: "lastHour", Title: "LAST HOUR", Right: true},
	{Key: "retentionMs", Title: "KEPT FOR"},
	{Key: "nextExpiry", Title: "NEXT EXPIRY"},
}

func (t *tool) listDeadLetterTopics(ctx context.Context, s *session) error {
	all, err := s.admin.ListTopics(ctx)
	if err != nil {
		return fmt.Errorf("list topics: %w", err)
	}
	found := siblings(all, s.Naming, retrytopics.KindDLQ)
	if len(found) == 0 {
		t.screen.Say("no dead-letter topics are named like %s, or this user may see none", s.template(retrytopics.KindDLQ))
	}
	stocks, problems := s.stocks(ctx, names(found), t.now())
	list := t.screen.List(topicColumns...)
	for _, f := range found {
		stock := stocks[f.topic]
		err := list.Row(f.topic, f.Source, f.sourceGone, f.partitions, stock.letters(), stock.lastHour(), stock.kept(), stock.expiry(t.now()))
		if err != nil {
			return err
		}
	}
	if err := list.Close(); err != nil {
		return err
	}
	for _, p := range problems {
		t.screen.Warn("%v", p)
	}
	return nil
}

var parkedColumns = []output.Column{
	{Key: "topic", Title: "TOPIC"},
	{Key: "source", Title: "SOURCE"},
	{Key: "delayMs", Title: "DELAY"},
	{Key: "partitions", Title: "PARTITIONS", Right: true},
	{Key: "group", Title: "GROUP"},
	{Key: "parked", Title: "PARKED", Right: true},
}

func (t *tool) listParked(ctx context.Context, s *session) error {
	all, err := s.admin.ListTopics(ctx)
	if err != nil {
		return fmt.Errorf("list topics: %w", err)
	}
	tiers := siblings(all, s.Naming, retrytopics.KindRetry)
	sortTiers(tiers)
	if len(tiers) == 0 {
		t.screen.Say("no retry topics are named like %s, or this user may see none", s.template(retrytopics.KindRetry))
	}
	backlogs, problems := s.backlogs(ctx, names(tiers))
	list := t.screen.List(parkedColumns...)
	for _, tier := range tiers {
		for _, b := range backlogs[tier.topic] {
			if err := list.Row(tier.topic, tier.Source, tier.Delay, tier.partitions, b.group, b.parked); err != nil {
				return err
			}
		}
	}
	if err := list.Close(); err != nil {
		return err
	}
	for _, p := range problems {
		t.screen.Warn("%v", p)
	}
	return nil
}

// template is how topics of a kind are named.
func (s *session) template(kind retrytopics.Kind) string {
	given, otherwise := s.Naming.DLQ, retrytopics.DefaultDLQ
	if kind == retrytopics.KindRetry {
		given, otherwise = s.Naming.Retry, retrytopics.DefaultRetry
	}
	if given == "" {
		return otherwise
	}
	return given
}
