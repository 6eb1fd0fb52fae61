package run

// The verb that reports the effect of a run beforehand, and a plan as text.

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/subject"
)

// planning is the flags of plan.
type planning struct {
	*runFlags
	save string // the file that gets the plan
}

// NewPlan makes the verb plan.
func NewPlan(t *cli.Tool) *cobra.Command {
	var p planning
	cmd := &cobra.Command{
		Use:   "plan TOPIC...",
		Short: "Report what a run with these options would do",
		Long: `Plan reports which open dead letters a run would select, where it would send them, which groups would see them there
and how long it would take. Plan sends nothing. It only records in the ledger new outcomes of letters that earlier runs
redrove. Run takes the same options and plans again.

With --save it also writes the plan to a file. run --plan redrives the letters of that file, and no others, from any
machine. The file has the changes to the records, too, and a check against edits.

Several topics are one plan after the other: with -o json an array, with -o jsonl a line each. A run has one topic.`,
		Example: `  redrive plan orders.dlq --class http.503
  redrive plan orders.dlq --since 2h --rate 200
  redrive plan orders.dlq --rate 10%
  redrive plan orders.dlq payments.dlq --since 2h
  redrive plan orders.dlq --class decode --patch '{"currency":"EUR"}'
  redrive plan orders.dlq --class http.503 --save http503.plan`,
		RunE: func(cmd *cobra.Command, args []string) error {
			asked, err := p.compile(t)
			if p.save != "" && len(args) > 1 {
				err = errors.Join(err, errors.New("--save is for one topic: a run has one"))
			}
			ctx := cmd.Context()
			return t.With(ctx, func(s *cli.Session) error {
				return subject.EachTopic(ctx, s, args, func(topic string, show func(...output.Field) error) error {
					return p.plan(ctx, s, topic, asked, show)
				})
			}, err)
		},
	}
	p.runFlags = addRunFlags(t, cmd)
	cmd.Flags().StringVar(&p.save, "save", "", "write the plan to a new `file`, which run --plan takes")
	cli.CompleteFiles(cmd, "save")
	return cmd
}

// plan makes the plan of a topic, shows it, and writes it to the file of --save.
func (p *planning) plan(ctx context.Context, s *cli.Session, topic string, asked asked, show func(...output.Field) error) error {
	r, plan, err := planRun(ctx, s, topic, p.runFlags, asked)
	if err != nil {
		return err
	}
	pace, err := p.pace.paceOf(ctx, s.Tool, r, plan, asked.pace)
	if err != nil {
		return err
	}
	if p.save != "" {
		if err := savePlan(plan, p.save); err != nil {
			return err
		}
		s.Screen.Print("the plan is in %s: redrive run %s --plan %s%s runs it", p.save, topic, p.save, p.pace.given())
	}
	return showPlan(s.Tool, plan, pace, show)
}

func showPlan(t *cli.Tool, p *redrive.Plan, pace redrive.Pace, show func(...output.Field) error) error {
	field := output.NewField
	var takes any
	if pace.Rate > 0 {
		takes = p.Duration(pace)
	}
	classes, partitions := output.Counts("class", "CLASS", p.ByClass), output.Counts("partition", "PARTITION", p.ByPartition)
	err := show(
		field("topic", "TOPIC", p.Selection.Topic),
		field("letters", "LETTERS", p.Letters),
		field("targets", "TARGET", output.Pair{Table: targetsOf(p), JSON: output.Counts("topic", "TOPIC", p.Targets)}),
		field("seenBy", "SEEN BY", output.Pair{Table: strings.Join(p.SeenBy, ", "), JSON: p.SeenBy}),
		field("watched", "WATCHED", output.Pair{Table: strings.Join(p.Watched, ", "), JSON: p.Watched}),
		field("sendingMs", "SENDING TAKES", output.Pair{Table: sendingTakes(p, pace), JSON: takes}),
		field("skipped", "SKIPPED", output.Pair{Table: cli.CountsText(p.Skipped), JSON: output.OrEmpty(p.Skipped)}),
		field("maxAttempts", "MAX ATTEMPTS", output.UnlessZero(p.Selection.MaxAttempts)),
		editText(p.Selection.Edit),
		field("classes", "", classes),
		field("partitions", "", partitions),
		field("groups", "", output.Counts("group", "GROUP", p.ByGroup)),
		field("warnings", "", output.Pair{JSON: p.Warnings}),
	)
	if err != nil {
		return err
	}
	for _, w := range p.Warnings {
		t.Screen.Warn("%s", w)
	}
	return t.Screen.Tables(classes, partitions)
}
