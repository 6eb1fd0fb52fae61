package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/connect"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/selection"
)

// completeFlags offers the values of the flags that all verbs have.
func completeFlags(t *tool, root *cobra.Command) {
	fixed := func(values []string) cobra.CompletionFunc {
		return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	}
	offer(root, "output", fixed(output.Formats))
	offer(root, "sasl", fixed(connect.Mechanisms))
	offer(root, "profile", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return connect.Profiles(t.flags.File(t.env.Getenv, t.env.Folder)), cobra.ShellCompDirectiveNoFileComp
	})
	files := func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveDefault
	}
	for _, name := range []string{"config", "tls-ca", "tls-cert", "tls-key", "sasl-password-file", "sasl-token-file"} {
		offer(root, name, files)
	}
}

func offer(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // the flag's name is wrong, which the first test sees
	}
}

// completeSelection offers the values of the filters that have few.
func completeSelection(cmd *cobra.Command) {
	offer(cmd, "reason", cobra.FixedCompletions(selection.Reasons, cobra.ShellCompDirectiveNoFileComp))
}

// completeTopic offers the cluster's dead-letter topics for a verb's first argument. Who presses Tab waits a second, not
// ten, and sees no error.
func completeTopic(t *tool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		c, err := t.flags.Cluster(t.env)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		parent := cmd.Context()
		if parent == nil {
			parent = context.Background()
		}
		ctx, cancel := context.WithTimeout(parent, time.Second)
		defer cancel()
		names, err := deadLetterTopics(ctx, c)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
