package main

import (
	"github.com/spf13/cobra"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/connect"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
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
