package run

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/subject"
)

// CompleteRun completes a verb's first argument by the cluster's dead-letter topics, and once one
// is typed by its runs, the newest first: all, or those that are unfinished.
func CompleteRun(t *cli.Tool, unfinished bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) (found []string, _ cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		slash := strings.LastIndexByte(typed, '/')
		if slash < 0 {
			for _, topic := range subject.LookUpTopics(cmd.Context(), t) {
				found = append(found, topic+"/")
			}
			return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		topic := typed[:slash]
		subject.LookUp(cmd.Context(), t, func(ctx context.Context, s *cli.Session) error {
			r, err := s.Redriver()
			if err != nil {
				return err
			}
			runs, err := r.Runs(ctx, topic)
			for _, o := range slices.Backward(runs) {
				if !unfinished || !o.State.Finished() {
					found = append(found, topic+"/"+o.ID+"\t"+stateOf(o, t.Now()))
				}
			}
			return err
		})
		return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}
