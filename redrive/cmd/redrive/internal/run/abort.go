package run

// The verb that ends a run for good, wherever its process is.

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
)

// NewAbort makes the verb abort.
func NewAbort(t *cli.Tool) *cobra.Command {
	var o *cli.Operator
	cmd := &cobra.Command{
		Use:   "abort RUN",
		Short: "End a run for good, wherever its process is",
		Long: `Abort ends an unfinished run for good. Copies that its process has not committed by then never become visible. Letters
that the run has sent stay sent, and status reports their outcomes; all other letters stay open. Abort does not ask; it
prints which process owned the run. An aborted run can't be resumed.`,
		Example: `  redrive abort orders.dlq/20260102-150405-a1b2c3
  redrive abort orders.dlq/20260102-150405-a1b2c3 --why rolled-back`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return onRun(cmd.Context(), t, args[0], func(ctx context.Context, r *redrive.Redriver, topic, id string) error {
				before, known := readRun(ctx, r, topic, id)
				over := before.State.Finished()
				if err := r.Abort(ctx, topic, id, redrive.AbortOptions{By: o.By, Why: o.Why}); err != nil {
					return err
				}
				out, err := r.Status(ctx, topic, id)
				switch {
				case over:
					t.Screen.Print("run %s/%s had already ended, and nothing was changed", topic, id)
				case err != nil:
					t.Screen.Print("run %s/%s is aborted; the outcomes of its records are not known yet", topic, id)
				}
				if owner, active := ActiveOwner(t, before); active && !over {
					t.Screen.Print("the run was still active: %s", owner)
				} else if !known {
					t.Screen.Print("the ledger could not be read in time to see whether a process owned the run: one that did stops")
				}
				if err != nil {
					return err
				}
				if err := showOutcome(t, out); err != nil || over {
					return err
				}
				reportLeft(t, out)
				return nil
			}, o.Check())
		},
	}
	cli.Section(cmd, cli.SectionLedger, func(set *pflag.FlagSet) { o = cli.AddOperator(t, set) })
	return cmd
}

// readRunTime is how long abort reads the ledger to find the process that owns a run. An active
// process leaves no transaction open for longer; the transactions of a dead process may stay open
// for longer.
const readRunTime = 3 * time.Second

// readRun reads the state of a run before it is aborted; known is false where that took too long.
// It drops errors, since the abort itself meets them.
func readRun(ctx context.Context, r *redrive.Redriver, topic, id string) (o redrive.Outcome, known bool) {
	ctx, cancel := context.WithTimeout(ctx, readRunTime)
	defer cancel()
	runs, _ := r.Runs(ctx, topic)
	if i := slices.IndexFunc(runs, func(o redrive.Outcome) bool { return o.ID == id }); i >= 0 {
		return runs[i], true
	}
	return redrive.Outcome{}, false
}
