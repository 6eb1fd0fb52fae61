package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/redrive"
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

// completeTopic offers the cluster's dead-letter topics for a verb's first argument.
func completeTopic(t *tool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
		if len(args) == 0 {
			names = t.lookUp(cmd, deadLetterTopics)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

func unfinished(o redrive.Outcome) bool { return !o.State.Finished() }
func anyRun(redrive.Outcome) bool       { return true }

// completeRun offers runs for a verb's first argument: topics first, and then the runs of the one that was typed, the youngest first.
func completeRun(t *tool, which func(redrive.Outcome) bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) (names []string, _ cobra.ShellCompDirective) {
		topic, _, whole := strings.Cut(typed, "/")
		switch {
		case len(args) > 0:
		case !whole:
			for _, name := range t.lookUp(cmd, deadLetterTopics) {
				names = append(names, name+"/")
			}
			return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		default:
			names = t.lookUp(cmd, func(ctx context.Context, c *connect.Cluster) (names []string, err error) {
				r, err := redrive.New(redrive.Config{Kafka: append(c.Opts(), kgo.DisableClientMetrics()), Naming: c.Naming, By: "nobody"})
				if err != nil {
					return nil, err
				}
				runs, err := r.Runs(ctx, topic)
				for _, o := range slices.Backward(runs) {
					if which(o) {
						names = append(names, topic+"/"+o.ID)
					}
				}
				return names, err
			})
		}
		return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// lookUp asks the cluster for what could be completed. Who presses Tab waits a second, not ten, and sees no error.
func (t *tool) lookUp(cmd *cobra.Command, what func(context.Context, *connect.Cluster) ([]string, error)) []string {
	c, err := t.flags.Cluster(t.env)
	if err != nil {
		return nil
	}
	parent := cmd.Context()
	if parent == nil {
		parent = context.Background()
	}
	ctx, cancel := context.WithTimeout(parent, time.Second)
	defer cancel()
	names, err := what(ctx, c)
	if err != nil {
		return nil
	}
	return names
}
