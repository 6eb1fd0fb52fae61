package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

func newShow(t *tool) *cobra.Command {
	as := output.Text
	cmd := &cobra.Command{
		Use:   "show TOPIC P:OFFSET",
		Short: "Show one dead letter: why it is there, its headers and its value",
		Long: `Show prints one dead letter: why and when it failed, where it came from, all its headers, and its value. From the
ledger it prints what became of the letter. P:OFFSET is the letter's partition and offset in the dead-letter topic, as
list prints them.`,
		Example: `  redrive show orders.dlq 3:41
  redrive show orders.dlq 3:41 --as json
  redrive show orders.dlq 3:41 --as json -o json | jq .value.customer`,
		RunE: func(cmd *cobra.Command, args []string) error {
			partition, offset, err := parsePlace(args[1])
			return t.with(cmd.Context(), func(s *session) error {
				f, err := findTopic(cmd.Context(), s, args[0])
				if err != nil {
					return err
				}
				name, err := ledgerName(s.Naming, f)
				if err != nil {
					return err
				}
				l, notes, err := dlq.NewLedger(f.topic, name, s.opts...).Find(cmd.Context(), partition, offset)
				if l == nil {
					if len(notes) > 0 {
						err = fmt.Errorf("%w; the ledger still records: %s", err, noteText(notes[len(notes)-1], t.screen.Look))
					}
					return onTopic("READ", f.topic, err)
				}
				var state any = cmp.Or(string(l.State), "open")
				if err != nil {
					t.screen.Warn("the letter's state is not known: %v", onTopic("READ", name, err))
					state = nil
				}
				return showLetter(t, l, state, notes, as)
			}, err)
		},
	}
	cmd.Flags().Var(&as, "as", "`form` of key, value and headers: "+strings.Join(output.Renderings, ", "))
	offer(cmd, "as", cobra.FixedCompletions(output.Renderings, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}
