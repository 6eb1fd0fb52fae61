package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/selection"
	"github.com/sidingkafka/siding/redrive/internal/resolved"
)

// A decision is what an operator records in the ledger about letters, without a run.
type decision struct {
	*operator
	verb  string // "discard"
	done  string // "discarded"
	takes string // "open letter"
	// count counts the letters that would be written, before the operator is asked
	count func(context.Context, *dlq.Ledger, dlq.Filter, dlq.Cursor) (int64, error)
	write func(context.Context, *dlq.Ledger, dlq.Filter, dlq.Cursor, func(headers.Position, error)) (int64, error)
	// raced is what a run that begins meanwhile means for the letters
	raced string
}

// make counts the letters, asks, and records the decision.
func (d *decision) make(ctx context.Context, s *session, topic string, sel *selection.Selection, yes bool) error {
	f, frozen, err := choose(ctx, s, topic, sel)
	if err != nil {
		return err
	}
	ledger, err := idleLedger(ctx, s, f, toWrite, nil, []string{"WRITE"})
	if err != nil {
		return err
	}
	most, err := d.count(ctx, ledger, sel.Filter, frozen)
	warnOfWhere(s.tool, sel)
	switch {
	case err != nil:
		return readFailed(topic, err) // what can't be read can't be asked about
	case most == 0:
		if how := resolved.Describe(ctx, ledger, &sel.Filter); how != "" {
			return refuse("nothing was %s: %s", d.done, how)
		}
		return refuse("nothing was %s: no %s of %s fits: redrive summary %s shows what is there", d.done, d.takes, topic, topic)
	}
	if !yes {
		if err := confirm(ctx, s.tool, fmt.Sprintf("%s of %s will be %s", letters(most), topic, d.done), most); err != nil {
			return err
		}
	}
	if err := stillIdle(ctx, ledger); err != nil {
		return err
	}
	var written int64
	n, err := d.write(ctx, ledger, sel.Filter, frozen, func(headers.Position, error) {
		if written++; written%1000 == 0 {
			s.screen.Status("%s %s", d.verb, output.Bar(written, most))
		}
	})
	if err != nil {
		if n > 0 {
			s.screen.Say("%s of %s were %s before the error: run %s again for the rest", letters(n), topic, d.done, d.verb)
		}
		return onTopic("WRITE", ledger.Name(), err)
	}
	if err := stillIdle(ctx, ledger); err != nil {
		s.screen.Warn("%v; %s: redrive show reports what became of a letter", err, d.raced)
	}
	return s.screen.Object(
		output.NewField("topic", "TOPIC", topic),
		output.NewField(d.done, strings.ToUpper(d.done), n),
		output.NewField("by", "BY", d.by),
		output.NewField("why", "WHY", d.why),
	)
}
