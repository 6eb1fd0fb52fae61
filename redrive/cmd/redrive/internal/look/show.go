package look

// The verb that shows one dead letter: why it is there, its headers and its value.

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/subject"
)

// NewShow makes the verb show.
func NewShow(t *cli.Tool) *cobra.Command {
	as := output.Text
	var around int64
	cmd := &cobra.Command{
		Use:   "show TOPIC P:OFFSET",
		Short: "Show one dead letter: why it is there, its headers and its value",
		Long: `Show prints one dead letter: why and when it failed, where it came from, all its headers, and its value. From the
ledger it prints what became of the letter. P:OFFSET is the letter's partition and offset in the dead-letter topic, as
list prints them.

--around 5 also prints its neighbours on the source: the records at the five offsets before and after the original
position, the original marked by >. It says so where they are gone.`,
		Example: `  redrive show orders.dlq 3:41
  redrive show orders.dlq 3:41 --as json
  redrive show orders.dlq 3:41 --around 5
  redrive show orders.dlq 3:41 --as json -o json | jq .value.customer`,
		RunE: func(cmd *cobra.Command, args []string) error {
			partition, offset, err := parsePlace(args[1])
			var err2 error
			if cmd.Flags().Changed("around") && (around < 1 || around > mostAround) {
				err2 = fmt.Errorf("--around: %d is not between 1 and %d", around, mostAround)
			}
			return t.With(cmd.Context(), func(s *cli.Session) error {
				f, err := subject.FindTopic(cmd.Context(), s, args[0])
				if err != nil {
					return err
				}
				name, err := subject.LedgerName(s.Naming, f)
				if err != nil {
					return err
				}
				l, records, err := dlq.NewLedger(f.Topic, name, s.Kafka...).Find(cmd.Context(), partition, offset)
				if l == nil {
					if len(records) > 0 {
						err = fmt.Errorf("%w; the ledger still records: %s", err, recordText(records[len(records)-1], t.Screen.Look))
					}
					return cli.OnTopic("READ", f.Topic, err)
				}
				var state any = cmp.Or(string(l.State), "open")
				if err != nil {
					t.Screen.Warn("the letter's state is not known: %v", cli.OnTopic("READ", name, err))
					state = nil
				}
				var near *neighbourhood
				if around > 0 {
					if near, err = findAround(cmd.Context(), s, l.Meta.Original, around); err != nil {
						near.missing = fmt.Sprintf("the source can't be read: %v", err)
					}
				}
				return showLetter(t, l, state, records, near, as)
			}, err, err2)
		},
	}
	cmd.Flags().Int64Var(&around, "around", 0, "also show the records at this `number` of offsets before and after it on the source")
	cmd.Flags().Var(&as, "as", "`form` of key, value and headers: "+strings.Join(output.Renderings, ", "))
	cli.Complete(cmd, "as", cobra.FixedCompletions(output.Renderings, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}
