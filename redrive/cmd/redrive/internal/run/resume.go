package run

// The verb that continues a run that was stopped, or whose process died.

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
)

// NewResume makes the verb resume.
func NewResume(t *cli.Tool) *cobra.Command {
	var o *cli.Operator
	var noWait *bool
	var pace *paceFlags
	var yes bool
	cmd := &cobra.Command{
		Use:   "resume RUN",
		Short: "Continue a run that was stopped, or whose process died",
		Long: `Resume continues an unfinished run where the ledger shows that it stopped: it sends no letter twice and omits none.
Letters, target and edits are those that the run began with. Flags of the pace change the rest of the run, also for
those who resume it later.

A process that still owns the run loses it. So resume names that process and asks first. It does not ask if the process
recorded that it stopped, or if its last heartbeat is more than 20 seconds old and no other comes within 7 seconds.
Resume also asks if the ledger can't be read in time.`,
		Example: `  redrive resume orders.dlq/20260102-150405-a1b2c3
  redrive resume orders.dlq/20260102-150405-a1b2c3 --rate 200
  redrive resume orders.dlq/20260102-150405-a1b2c3 --yes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			changes, wrong := pace.changes()
			return onRun(cmd.Context(), t, args[0], func(ctx context.Context, r *redrive.Redriver, topic, id string) error {
				on := follow(t, func(e redrive.Event) {
					t.Screen.Print("run %s/%s: %d of %s were sent; %s", topic, id, e.Counts.Sent, cli.Letters(e.Counts.Selected), rateText(e.Pace))
				})
				var conditions []redrive.Condition
				if !yes {
					conditions = append(conditions, redrive.IfSilent())
				}
				cli.OutlivePipes()
				for {
					t.Screen.Status("checking which process owns %s/%s …", topic, id)
					out, err := r.Resume(ctx, topic, id, redrive.RunOptions{By: o.By, Pace: changes, On: on}, conditions...)
					held, ok := errors.AsType[*redrive.RefusedError](err)
					if !ok || held.Reason != redrive.RefusedOwned {
						return finish(ctx, t, r, out, err, *noWait)
					}
					if err := cli.Agree(ctx, t, held.Detail+". To resume it here takes it from that process"); err != nil {
						return err
					}
					// from that process only
					conditions = []redrive.Condition{redrive.IfClaim(held.Run.Claim)}
				}
			}, errors.Join(wrong, o.Check()))
		},
	}
	cli.Section(cmd, cli.SectionPace, func(set *pflag.FlagSet) { pace = addResumePace(set) })
	cli.Section(cmd, cli.SectionLedger, func(set *pflag.FlagSet) { o = cli.AddBy(t, set) })
	cmd.Flags().BoolVar(&yes, "yes", false, "take the run from a process that still owns it, without asking")
	noWait = addNoWait(cmd)
	return cmd
}
