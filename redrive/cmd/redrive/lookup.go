package main

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

// completeTopic offers the cluster's dead-letter topics for a verb's first argument, or for all of
// several.
func completeTopic(t *cli.Tool, several bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
		if len(args) == 0 || several {
			given := func(name string) bool { return slices.Contains(args, name) }
			names = slices.DeleteFunc(lookUpTopics(cmd.Context(), t), given)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// lookUpTopics asks the cluster for its dead-letter topics.
func lookUpTopics(ctx context.Context, t *cli.Tool) (found []string) {
	lookUp(ctx, t, func(ctx context.Context, s *cli.Session) error {
		all, err := s.Admin.ListTopics(ctx)
		found = names(siblings(all, s.Naming, retrytopics.KindDLQ))
		return err
	})
	return found
}

// lookUp asks the cluster. The user who presses Tab waits a second, not ten, and sees no error.
func lookUp(ctx context.Context, t *cli.Tool, ask func(context.Context, *cli.Session) error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	silent := *t
	silent.Screen = output.NewScreen(io.Discard, io.Discard, t.Env.Getenv)
	_ = silent.With(ctx, func(s *cli.Session) error { return ask(ctx, s) })
}
