package look

// The verb that counts the open dead letters by their failures.

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/guards"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/selection"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/subject"
)

// NewSummary makes the verb summary.
func NewSummary(t *cli.Tool) *cobra.Command {
	var flags *selection.Flags
	var by string
	cmd := &cobra.Command{
		Use:   "summary TOPIC...",
		Short: "Count the open dead letters by what failed",
		Long: `Summary reads a dead-letter topic once and counts the open letters by class and fingerprint of their error. Each row
has their number, the groups that failed if there are several, when the first and the last failed, and the message of
the first. A crash of a consumer may write
copies of a letter; summary counts them once.

It lists up to 1,000 pairs of class and fingerprint, and counts the others as (other).

--by 10m also counts the open letters by the time of their failure, up to 1,000 times, and draws them.

Several topics are one summary after the other: with -o json an array, with -o jsonl a line each.`,
		Example: `  redrive summary orders.dlq
  redrive summary orders.dlq --by 10m
  redrive summary orders.dlq payments.dlq --since 2h
  redrive summary orders.dlq --since 2h --group billing
  redrive summary orders.dlq -o json | jq '.failures[] | [.count, .class]'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			sel, err1 := flags.Compile(t.Now())
			length, err2 := parseBy(by)
			return t.With(cmd.Context(), func(s *cli.Session) error { return summarizeAll(cmd.Context(), s, args, sel, length) }, err1, err2)
		},
	}
	flags = cli.AddSelection(cmd)
	cmd.Flags().StringVar(&by, "by", "", "also count by the time of failure, in steps of this `duration`, such as 10m or 1d")
	return cmd
}

// summarizeAll summarizes topics, one after the other.
func summarizeAll(ctx context.Context, s *cli.Session, topics []string, sel *selection.Selection, by time.Duration) error {
	err := subject.EachTopic(ctx, s, topics, func(topic string, show func(...output.Field) error) error {
		sum, held, err := summarize(ctx, s, topic, sel, by)
		if sum == nil || ctx.Err() != nil {
			return err
		}
		// The counts of the other partitions are useful where one can't be read.
		if err := showSummary(s.Tool, sum, held, by, show); err != nil {
			return err
		}
		// A mistyped class looks like a class without open letters.
		if classes := sel.Filter.Classes; err == nil && sum.Open == 0 && len(classes) > 0 {
			s.Screen.Print("no open letter fits --class %s: redrive summary %s shows the classes there are", strings.Join(classes, ","), topic)
		}
		return err
	})
	subject.WarnOfWhere(s.Tool, sel)
	return err
}

func summarize(ctx context.Context, s *cli.Session, topic string, sel *selection.Selection, by time.Duration) (sum *dlq.Summary, held []guards.Guard, err error) {
	f, frozen, err := subject.Choose(ctx, s, topic, sel)
	if err != nil {
		return nil, nil, err
	}
	ledger, err := subject.ReadLedger(ctx, s, f, subject.ToInspect)
	if err != nil {
		return nil, nil, err
	}
	if reading := cli.Progress(s.Tool, "reading "+topic); by > 0 {
		sum, err = ledger.SummarizeBy(ctx, sel.Filter, frozen, by, reading)
	} else {
		sum, err = ledger.Summarize(ctx, sel.Filter, frozen, reading)
	}
	if sum != nil {
		for i := range sum.Failures {
			sum.Failures[i].Sample = s.Redact.Message(sum.Failures[i].Sample)
		}
	}
	all, unread := readHeld(ctx, s.Admin, []string{f.Source})
	if unread != nil && ctx.Err() == nil {
		s.Screen.Warn("%v", unread)
	}
	return sum, all[f.Source], subject.ReadFailed(topic, err)
}

func showSummary(t *cli.Tool, sum *dlq.Summary, held []guards.Guard, by time.Duration, show func(...output.Field) error) error {
	failures, groups := output.RowsOf(sum.Failures, failureFields(sum)), output.RowsOf(sum.Groups, groupFields)
	fields := append(totals(sum),
		output.NewField("failures", "", failures),
		output.NewField("groups", "", groups),
		output.NewField("partitions", "", output.RowsOf(sum.Partitions, partitionFields)),
		output.NewField("guards", "GUARD", heldCell(held, t.Now())),
	)
	if by > 0 {
		fields = append(fields, output.NewField("byMs", "", by), output.NewField("times", "", output.RowsOf(sum.Times, timeFields)))
	}
	if err := show(fields...); err != nil {
		return err
	}
	return t.Screen.Tables(failures, groups, drawTimes(sum.Times, by))
}
