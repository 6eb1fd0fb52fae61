package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/selection"
)

// CompleteFiles completes a flag.
func CompleteFiles(cmd *cobra.Command, flag string) {
	Complete(cmd, flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveDefault
	})
}

// Complete completes the values of a flag.
func Complete(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // the flag's name is wrong, which the first test finds
	}
}

// AddSelection gives a verb the filters, and completes the values of --state and --reason.
func AddSelection(cmd *cobra.Command) (flags *selection.Flags) {
	Section(cmd, SectionLetters, func(set *pflag.FlagSet) { flags = selection.AddFlags(set) })
	Complete(cmd, "state", cobra.FixedCompletions(selection.States, cobra.ShellCompDirectiveNoFileComp))
	Complete(cmd, "reason", cobra.FixedCompletions(selection.Reasons, cobra.ShellCompDirectiveNoFileComp))
	return flags
}
