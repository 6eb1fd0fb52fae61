package root

import (
	"github.com/spf13/cobra"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/connect"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

// completeFlags completes the values of the flags that all verbs have.
func completeFlags(t *cli.Tool, root *cobra.Command) {
	fixed := func(values []string) cobra.CompletionFunc {
		return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	}
	cli.Complete(root, "output", fixed(output.Formats))
	cli.Complete(root, "color", fixed(output.Colours))
	cli.Complete(root, "sasl", fixed(connect.Mechanisms))
	cli.Complete(root, "profile", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		file, _ := t.Flags.File(t.Env)
		return connect.Profiles(file), cobra.ShellCompDirectiveNoFileComp
	})
	for _, name := range []string{"config", "tls-ca", "tls-cert", "tls-key", "sasl-password-file", "sasl-token-file"} {
		cli.CompleteFiles(root, name)
	}
}
