package main

// The verb that withdraws that dead letters were discarded.

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/selection"
)

func newReopen(t *tool) *cobra.Command {
	var flags *selection.Flags
	var o *operator
	var yes bool
	cmd := &cobra.Command{
		Use:   "reopen TOPIC --why REASON",
		Short: "Withdraw that dead letters were discarded",
		Long: `Reopen records in the ledger that the chosen letters are open again, with the operator, the time and the reason. It
takes letters that were discarded or compensated, whether by an operator or by the handler of a redriven record. A
handler discards the record again when it is redriven, unless the handler was changed. Letters in other states stay as
they are.

Reopen counts the letters first and asks you to type their number. It reopens these letters and no others. It is
refused while a run on the topic is unfinished.`,
		Example: `  redrive reopen orders.dlq --offset 3:41 --why "the customer wants it after all"
  redrive reopen orders.dlq --class orders.SKUError --state compensated --why OPS-4714`,
		RunE: func(cmd *cobra.Command, args []string) error {
			sel, err := flags.Compile(t.now())
			reopens := &decision{
				operator: o, verb: "reopen", done: "reopened", takes: "discarded letter",
				scope: dlq.DiscardedOnly, takesState: dlq.State.Discards,
				write: func(ctx context.Context, l *dlq.Ledger, f dlq.Filter, until dlq.Cursor, done func(headers.Position, error)) (int64, error) {
					return l.Reopen(ctx, f, until, dlq.ReopenOptions{By: o.by, Why: o.why, Done: done})
				},
				raced: "the run may have begun before the letters were open, and does not redrive them then",
			}
			return t.with(cmd.Context(), func(s *session) error { return reopens.make(cmd.Context(), s, args[0], sel, yes) }, o.check(), o.reasoned(), err)
		},
	}
	flags = addSelection(cmd)
	section(cmd, sectionLedger, func(set *pflag.FlagSet) { o = addOperator(t, set) })
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return cmd
}
