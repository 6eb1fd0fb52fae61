package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/selection"
)

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
