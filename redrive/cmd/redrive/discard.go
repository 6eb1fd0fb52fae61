package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/selection"
)

func newDiscard(t *tool) *cobra.Command {
	var flags *selection.Flags
	var o *operator
	var yes bool
	cmd := &cobra.Command{
		Use:   "discard TOPIC --why REASON",
		Short: "Discard open dead letters, with a reason",
		Long: `Discard records in the ledger that the chosen open dead letters are discarded, with the operator, the time and the
reason. No run redrives them from then on. The letters stay in the topic until retention or prune deletes them.

Discard counts the letters first and asks you to type their number. Letters that arrive meanwhile are not discarded.

Discard is refused while a run on the topic is unfinished. A run that begins while discard writes redrives the letters
that it has read already; discard warns of that, and show reports what became of each.`,
		Example: `  redrive discard orders.dlq --class orders.SKUError --why sold-out
  redrive discard orders.dlq --offset 3:41 --by ada --why duplicate --yes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			sel, err := flags.Compile(t.now())
			var noReason error
			if o.why == "" {
				noReason = errors.New("--why is missing: the ledger records the reason")
			}
			return t.with(cmd.Context(), func(s *session) error { return discard(cmd.Context(), s, args[0], sel, o, yes) }, o.check(), noReason, err)
		},
	}
	flags = addSelection(cmd)
	section(cmd, sectionLedger, func(set *pflag.FlagSet) { o = addOperator(t, set) })
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return cmd
}

func discard(ctx context.Context, s *session, topic string, sel *selection.Selection, o *operator, yes bool) error {
	f, frozen, err := choose(ctx, s, topic, sel)
	if err != nil {
		return err
	}
	ledger, err := idleLedger(ctx, s, f, toWrite, nil, []string{"WRITE"})
	if err != nil {
		return err
	}
	sum, err := ledger.Summarize(ctx, sel.Filter, frozen, progress(s.tool, "counting letters of "+topic))
	warnOfWhere(s.tool, sel)
	switch {
	case err != nil:
		return readFailed(topic, err) // what can't be read can't be asked about
	case sum.Open == 0:
		return refuse("nothing was discarded: no open letter of %s fits: redrive summary %s shows what is open", topic, topic)
	}
	if !yes {
		if err := confirm(ctx, s.tool, fmt.Sprintf("%s of %s will be discarded", letters(sum.Open), topic), sum.Open); err != nil {
			return err
		}
	}
	if err := stillIdle(ctx, ledger); err != nil {
		return err
	}
	var done int64
	n, err := ledger.Discard(ctx, sel.Filter, frozen, o.by, o.why, func(headers.Position, error) {
		if done++; done%1000 == 0 {
			s.screen.Status("discarding %s", output.Bar(done, sum.Open))
		}
	})
	if err != nil {
		if n > 0 {
			s.screen.Say("%s of %s were discarded before the error: run discard again for the rest", letters(n), topic)
		}
		return onTopic("WRITE", ledger.Name(), err)
	}
	if err := stillIdle(ctx, ledger); err != nil {
		s.screen.Warn("%v; the run redrives the letters that it read before the discard: redrive show reports what became of a letter", err)
	}
	return s.screen.Object(
		output.NewField("topic", "TOPIC", topic),
		output.NewField("discarded", "DISCARDED", n),
		output.NewField("by", "BY", o.by),
		output.NewField("why", "WHY", o.why),
	)
}
