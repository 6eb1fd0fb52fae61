package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sidingkafka/siding/redrive"
)

func newStatus(t *tool) *cobra.Command {
	return &cobra.Command{
		Use:   "status RUN",
		Short: "Report how far a run is, and what became of its records",
		Long: `Status reports how far a run is, whichever process owns it, and what became of the letters that it redrove. It reads
their outcomes from the cluster, since some become known only after the run's end. It writes nothing.`,
		Example: `  redrive status orders.dlq/20260102-150405-a1b2c3
  redrive status orders.dlq/20260102-150405-a1b2c3 -o json | jq .pending`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return onRun(cmd.Context(), t, args[0], func(ctx context.Context, r *redrive.Redriver, topic, id string) error {
				t.screen.Status("reading the outcomes of %s/%s …", topic, id)
				o, err := r.Status(ctx, topic, id)
				if err != nil {
					return err
				}
				warnOfSilence(t, o)
				return showOutcome(t, o)
			}, nil)
		},
	}
}
