package resolve

// The verb that withdraws that dead letters were discarded.

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/selection"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/subject"
	letterset "github.com/sidingkafka/siding/redrive/internal/letters"
)

// NewReopen makes the verb reopen.
func NewReopen(t *cli.Tool) *cobra.Command {
	var flags *selection.Flags
	var o *cli.Operator
	var yes, pending bool
	cmd := &cobra.Command{
		Use:   "reopen TOPIC --why REASON",
		Short: "Withdraw that dead letters were discarded",
		Long: `Reopen records in the ledger that the chosen letters are open again, with the operator, the time and the reason. It
takes letters that were discarded or compensated, whether by an operator or by the handler of a redriven record. A
handler discards the record again when it is redriven, unless the handler was changed. Letters in other states stay as
they are.

With --pending it takes letters that were redriven and have no outcome, if no consumer can have the partition in
which their copies lie: the source, or the topic of the copy, was recreated with fewer partitions or is gone. It
names the copies. Should that partition exist again, a consumer runs the copy, too.

Reopen counts the letters first and asks you to type their number. It reopens these letters and no others. It is
refused while a run on the topic is unfinished.`,
		Example: `  redrive reopen orders.dlq --offset 3:41 --why "the customer wants it after all"
  redrive reopen orders.dlq --class orders.SKUError --state compensated --why OPS-4714
  redrive reopen orders.dlq --pending --why "orders has 2 partitions now"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			sel, err := flags.Compile(t.Now())
			reopens := &decision{
				Operator: o, verb: "reopen", done: "reopened", takes: "discarded letter",
				scope: dlq.DiscardedOnly, takesState: dlq.State.Discards,
				write: func(ctx context.Context, l *dlq.Ledger, f dlq.Filter, until dlq.Cursor, done func(headers.Position, error)) (int64, error) {
					return l.Reopen(ctx, f, until, dlq.ReopenOptions{By: o.By, Why: o.Why, Done: done})
				},
				raced: "the run may have begun before the letters were open, and does not redrive them then",
			}
			return t.With(cmd.Context(), func(s *cli.Session) error {
				if pending {
					if err := ofPending(cmd.Context(), reopens, s, args[0], sel); err != nil {
						return err
					}
				}
				return reopens.make(cmd.Context(), s, args[0], sel, yes)
			}, o.Check(), o.Reasoned(), err)
		},
	}
	flags = cli.AddSelection(cmd)
	cli.Section(cmd, cli.SectionLedger, func(set *pflag.FlagSet) { o = cli.AddOperator(t, set) })
	cmd.Flags().BoolVar(&pending, "pending", false, "take redriven letters whose copies no consumer can have")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return cmd
}

// maxNamed is how many copies are named.
const maxNamed = 10

// ofPending makes a decision one about pending letters whose copies no consumer can have. It names
// the first copies.
func ofPending(ctx context.Context, d *decision, s *cli.Session, topic string, sel *selection.Selection) error {
	ledger, err := subject.FindLedger(ctx, s, topic)
	if err != nil {
		return err
	}
	copies, err := redrive.FindLostCopies(ctx, redrive.Config{Kafka: s.Kafka, Naming: s.Naming}, ledger)
	if err != nil {
		return err
	}
	named, fits := letterset.Set{}, sel.Filter.Match
	sel.Filter.Match = func(l *dlq.Letter) bool {
		place := letterset.At(l.Record.Partition, l.Record.Offset)
		at := place.In(l.Record.Topic)
		copied, why := copies.Of(at)
		if why == "" || fits != nil && !fits(l) {
			return false
		}
		if named.Len() < maxNamed && named.Add(place) {
			s.Screen.Print("letter %s: its copy is at %s, and %s", at, copied, why)
		}
		return true
	}
	d.takes, d.scope, d.takesState = "pending letter whose copy no consumer can have", dlq.PendingOnly, func(state dlq.State) bool { return state == dlq.Redriven }
	d.write = func(ctx context.Context, l *dlq.Ledger, f dlq.Filter, until dlq.Cursor, done func(headers.Position, error)) (int64, error) {
		return l.Reopen(ctx, f, until, dlq.ReopenOptions{By: d.By, Why: d.Why, Done: done, Pending: copies.Has})
	}
	return nil
}
