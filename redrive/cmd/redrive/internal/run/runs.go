package run

// The verb that lists the runs of a dead-letter topic.

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/subject"
)

// NewRuns makes the verb runs.
func NewRuns(t *cli.Tool) *cobra.Command {
	return &cobra.Command{
		Use:   "runs TOPIC",
		Short: "List the runs of a dead-letter topic",
		Long: `Runs lists the runs of a dead-letter topic, oldest first, with the counts that each run recorded. Outcomes that became
known later are in status. A run is listed for as long as the ledger keeps its records.`,
		Example: `  redrive runs orders.dlq
  redrive runs orders.dlq -o jsonl | jq -r 'select(.ended == null) | .run'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.With(cmd.Context(), func(s *cli.Session) error {
				if _, err := subject.FindTopic(cmd.Context(), s, args[0]); err != nil {
					return err
				}
				r, err := s.Redriver()
				if err != nil {
					return err
				}
				runs, unread := r.Runs(cmd.Context(), args[0])
				rows := output.RowsOf(runs, func(o redrive.Outcome) []output.Field { return runFields(o, t.Now()) })
				if err := t.Screen.Rows(rows); err != nil {
					return err
				}
				if len(runs) == 0 && unread == nil {
					t.Screen.Print("%s has no runs, or its ledger no longer has them", args[0])
				}
				for _, o := range runs {
					warnOfSilence(t, o)
				}
				if i := slices.IndexFunc(runs, func(o redrive.Outcome) bool { return o.State.Finished() && o.Counts.Pending > 0 }); i >= 0 {
					t.Screen.Print("pending letters may have an outcome by now: redrive status %s/%s checks again", runs[i].Topic, runs[i].ID)
				}
				return unread
			})
		},
	}
}
