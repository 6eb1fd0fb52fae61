package resolve

// The verb that discards open dead letters, with a reason.

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/selection"
)

// NewDiscard makes the verb discard.
func NewDiscard(t *cli.Tool) *cobra.Command {
	var flags *selection.Flags
	var o *cli.Operator
	var yes, compensated bool
	cmd := &cobra.Command{
		Use:   "discard TOPIC --why REASON",
		Short: "Discard open dead letters, with a reason",
		Long: `Discard records in the ledger that the chosen open dead letters are discarded, with the operator, the time and the
reason. No run redrives them from then on. The letters stay in the topic until retention or prune deletes them.

With --compensated it records that a compensating action resolved what the records asked for, such as a refund. summary
and show tell these letters from those that were only given up. reopen withdraws either.

Discard counts the letters first and asks you to type their number. It discards these letters and no others: a letter
that arrives or is reopened meanwhile stays open. If one of them has an outcome by then, nothing is discarded.

Discard is refused while a run on the topic is unfinished. A run that begins while discard writes redrives the letters
that it has read already; discard warns of that, and show reports what became of each.`,
		Example: `  redrive discard orders.dlq --class orders.SKUError --why sold-out
  redrive discard orders.dlq --offset 3:41 --by ada --why "refunded, OPS-4713" --compensated --yes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			sel, err := flags.Compile(t.Now())
			d := &decision{
				Operator: o, verb: "discard", done: "discarded", takes: "open letter",
				scope: dlq.WithCopies, takesState: func(s dlq.State) bool { return !s.Resolves() },
				write: func(ctx context.Context, l *dlq.Ledger, f dlq.Filter, until dlq.Cursor, done func(headers.Position, error)) (int64, error) {
					return l.Discard(ctx, f, until, dlq.DiscardOptions{By: o.By, Why: o.Why, Compensated: compensated, Done: done})
				},
				raced: "the run redrives the letters that it read before the discard",
			}
			if compensated {
				d.done = "compensated"
			}
			return t.With(cmd.Context(), func(s *cli.Session) error { return d.make(cmd.Context(), s, args[0], sel, yes) }, o.Check(), o.Reasoned(), err)
		},
	}
	flags = cli.AddSelection(cmd)
	cli.Section(cmd, cli.SectionLedger, func(set *pflag.FlagSet) {
		o = cli.AddOperator(t, set)
		set.BoolVar(&compensated, "compensated", false, "record that a compensating action resolved the letters")
	})
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return cmd
}
