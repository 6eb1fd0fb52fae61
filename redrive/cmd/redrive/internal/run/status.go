package run

// The verb that reports how far a run is, and the outcomes of its letters.

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
)

// NewStatus makes the verb status.
func NewStatus(t *cli.Tool) *cobra.Command {
	var followed bool
	var noWait *bool
	cmd := &cobra.Command{
		Use:   "status RUN",
		Short: "Report how far a run is, and what became of its records",
		Long: `Status reports how far a run is, whichever process owns it, and what became of the letters that it redrove. It reads
their outcomes from the cluster, since some become known only after the run's end. It writes nothing.

With --follow it shows the progress of the run as run itself does, until the run is done, aborted or stopped, and then
ends with the exit code of run. Ctrl-C ends only status: the run goes on.`,
		Example: `  redrive status orders.dlq/20260102-150405-a1b2c3
  redrive status orders.dlq/20260102-150405-a1b2c3 --follow
  redrive status orders.dlq/20260102-150405-a1b2c3 -o json | jq .pending`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if *noWait && !followed {
				err = errors.New("--no-wait is for status --follow")
			}
			return onRun(cmd.Context(), t, args[0], func(ctx context.Context, r *redrive.Redriver, topic, id string) error {
				if followed {
					return followRun(ctx, t, r, topic, id, *noWait)
				}
				t.Screen.Status("reading the outcomes of %s/%s …", topic, id)
				o, err := r.Status(ctx, topic, id)
				if err != nil {
					return err
				}
				warnOfSilence(t, o)
				return showOutcome(t, o)
			}, err)
		},
	}
	cli.Section(cmd, cli.SectionOthers, func(set *pflag.FlagSet) {
		set.BoolVar(&followed, "follow", false, "show the run's progress until it ends")
	})
	noWait = addNoWait(cmd)
	return cmd
}
