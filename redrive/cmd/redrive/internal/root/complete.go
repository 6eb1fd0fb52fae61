package root

import (
	"github.com/spf13/cobra"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/connect"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

// completeFlags offers the values of the flags that all verbs have.
func completeFlags(t *cli.Tool, root *cobra.Command) {
	fixed := func(values []string) cobra.CompletionFunc {
		return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	}
	cli.Offer(root, "output", fixed(output.Formats))
	cli.Offer(root, "color", fixed(output.Colours))
	cli.Offer(root, "sasl", fixed(connect.Mechanisms))
	cli.Offer(root, "profile", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		file, _ := t.Flags.File(t.Env)
		return connect.Profiles(file), cobra.ShellCompDirectiveNoFileComp
	})
	for _, name := range []string{"config", "tls-ca", "tls-cert", "tls-key", "sasl-password-file", "sasl-token-file"} {
		cli.OfferFiles(root, name)
	}
}
