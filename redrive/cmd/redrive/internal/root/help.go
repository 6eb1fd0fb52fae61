package root

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

// The groups of the list of verbs.
const (
	groupInspect = "See what is there"
	groupRun     = "Redrive"
	groupResolve = "Discard, keep, delete"
	groupServe   = "Watch"
)

// The verbs stand in the order in which an operator needs them.
func init() { cobra.EnableCommandSorting = false }

// help writes how a verb is used, as cobra does, but for flags and verbs under headings, and flags
// as wide as the terminal.
func help(t *cli.Tool, cmd *cobra.Command) error {
	w, wide := cmd.OutOrStdout(), output.TerminalWidth(t.Stdout)
	fmt.Fprintf(w, "Usage:\n  %s\n", cmd.UseLine())
	if cmd.HasExample() {
		fmt.Fprintf(w, "\nExamples:\n%s\n", cmd.Example)
	}
	helpVerbs(w, cmd)
	helpFlags(w, cmd, wide)
	if cmd.HasAvailableInheritedFlags() {
		fmt.Fprintf(w, "\nConnection, names, output:\n%s", cmd.InheritedFlags().FlagUsagesWrapped(wide))
	}
	return nil
}

func helpVerbs(w io.Writer, cmd *cobra.Command) {
	under := map[string][]string{}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			under[sub.GroupID] = append(under[sub.GroupID], fmt.Sprintf("  %-12s%s\n", sub.Name(), sub.Short))
		}
	}
	for _, g := range append(cmd.Groups(), &cobra.Group{Title: "Others"}) {
		if lines := under[g.ID]; len(lines) > 0 {
			fmt.Fprintf(w, "\n%s:\n%s", g.Title, strings.Join(lines, ""))
		}
	}
}

func helpFlags(w io.Writer, cmd *cobra.Command, wide int) {
	cmd.LocalFlags().SortFlags = false
	for _, title := range cli.Sections {
		set := pflag.NewFlagSet(title, pflag.ContinueOnError)
		set.SortFlags = false
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if cli.SectionOf(f) == title && f.Name != "help" { // the reader has found it already
				set.AddFlag(f)
			}
		})
		if usages := set.FlagUsagesWrapped(wide); usages != "" {
			fmt.Fprintf(w, "\n%s:\n%s", title, usages)
		}
	}
}
