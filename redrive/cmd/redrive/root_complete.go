package main

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/connect"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/selection"
	"github.com/sidingkafka/siding/retrytopics"
)

// completeFlags offers the values of the flags that all verbs have.
func completeFlags(t *tool, root *cobra.Command) {
	fixed := func(values []string) cobra.CompletionFunc {
		return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	}
	offer(root, "output", fixed(output.Formats))
	offer(root, "color", fixed(output.Colours))
	offer(root, "sasl", fixed(connect.Mechanisms))
	offer(root, "profile", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		file, _ := t.flags.File(t.env)
		return connect.Profiles(file), cobra.ShellCompDirectiveNoFileComp
	})
	for _, name := range []string{"config", "tls-ca", "tls-cert", "tls-key", "sasl-password-file", "sasl-token-file"} {
		offerFiles(root, name)
	}
}

// offerFiles offers files for a flag.
func offerFiles(cmd *cobra.Command, flag string) {
	offer(cmd, flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveDefault
	})
}

func offer(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // the flag's name is wrong, which the first test sees
	}
}

// addSelection gives a verb the filters, and offers the values of --reason.
func addSelection(cmd *cobra.Command) (flags *selection.Flags) {
	section(cmd, sectionLetters, func(set *pflag.FlagSet) { flags = selection.AddFlags(set) })
	offer(cmd, "state", cobra.FixedCompletions(selection.States, cobra.ShellCompDirectiveNoFileComp))
	offer(cmd, "reason", cobra.FixedCompletions(selection.Reasons, cobra.ShellCompDirectiveNoFileComp))
	return flags
}

// completeTopic offers the cluster's dead-letter topics for a verb's first argument, or for all of
// several.
func completeTopic(t *tool, several bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
		if len(args) == 0 || several {
			given := func(name string) bool { return slices.Contains(args, name) }
			names = slices.DeleteFunc(lookUpTopics(cmd.Context(), t), given)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeRun offers the cluster's dead-letter topics for a verb's first argument, and once one is
// typed its runs, the newest first: all, or those that are unfinished.
func completeRun(t *tool, unfinished bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) (found []string, _ cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		slash := strings.LastIndexByte(typed, '/')
		if slash < 0 {
			for _, topic := range lookUpTopics(cmd.Context(), t) {
				found = append(found, topic+"/")
			}
			return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		topic := typed[:slash]
		lookUp(cmd.Context(), t, func(ctx context.Context, s *session) error {
			r, err := s.redriver()
			if err != nil {
				return err
			}
			runs, err := r.Runs(ctx, topic)
			for _, o := range slices.Backward(runs) {
				if !unfinished || !o.State.Finished() {
					found = append(found, topic+"/"+o.ID+"\t"+stateOf(o, t.now()))
				}
			}
			return err
		})
		return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// lookUpTopics asks the cluster for its dead-letter topics.
func lookUpTopics(ctx context.Context, t *tool) (found []string) {
	lookUp(ctx, t, func(ctx context.Context, s *session) error {
		all, err := s.admin.ListTopics(ctx)
		found = names(siblings(all, s.Naming, retrytopics.KindDLQ))
		return err
	})
	return found
}

// lookUp asks the cluster. The user who presses Tab waits a second, not ten, and sees no error.
func lookUp(ctx context.Context, t *tool, ask func(context.Context, *session) error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	silent := *t
	silent.screen = output.NewScreen(io.Discard, io.Discard, t.env.Getenv)
	_ = silent.with(ctx, func(s *session) error { return ask(ctx, s) })
}
