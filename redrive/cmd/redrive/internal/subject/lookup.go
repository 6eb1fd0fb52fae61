package subject

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/retrytopics"
)

// CompleteTopic completes a verb's first argument, or all of several, by the cluster's dead-letter
// topics.
func CompleteTopic(t *cli.Tool, several bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
		if len(args) == 0 || several {
			given := func(name string) bool { return slices.Contains(args, name) }
			names = slices.DeleteFunc(LookUpTopics(cmd.Context(), t), given)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// LookUpTopics asks the cluster for its dead-letter topics.
func LookUpTopics(ctx context.Context, t *cli.Tool) (found []string) {
	LookUp(ctx, t, func(ctx context.Context, s *cli.Session) error {
		all, err := s.Admin.ListTopics(ctx)
		found = Names(Siblings(all, s.Naming, retrytopics.KindDLQ))
		return err
	})
	return found
}

// LookUp asks the cluster. After Tab the user waits a second, not ten, and gets no error.
func LookUp(ctx context.Context, t *cli.Tool, ask func(context.Context, *cli.Session) error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	silent := *t
	silent.Screen = output.NewScreen(io.Discard, io.Discard, t.Env.Getenv)
	_ = silent.With(ctx, func(s *cli.Session) error { return ask(ctx, s) })
}
