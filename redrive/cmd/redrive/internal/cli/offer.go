package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/selection"
)

// OfferFiles offers files for a flag.
func OfferFiles(cmd *cobra.Command, flag string) {
	Offer(cmd, flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveDefault
	})
}

// Offer offers values for a flag.
func Offer(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // the flag's name is wrong, which the first test sees
	}
}

// AddSelection gives a verb the filters, and offers the values of --reason.
func AddSelection(cmd *cobra.Command) (flags *selection.Flags) {
	Section(cmd, SectionLetters, func(set *pflag.FlagSet) { flags = selection.AddFlags(set) })
	Offer(cmd, "state", cobra.FixedCompletions(selection.States, cobra.ShellCompDirectiveNoFileComp))
	Offer(cmd, "reason", cobra.FixedCompletions(selection.Reasons, cobra.ShellCompDirectiveNoFileComp))
	return flags
}
