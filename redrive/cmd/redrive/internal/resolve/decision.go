package resolve

// A decision of an operator about letters, without a run.

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/selection"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/subject"
	letterset "github.com/sidingkafka/siding/redrive/internal/letters"
	"github.com/sidingkafka/siding/redrive/internal/resolved"
)

// A decision is what an operator records in the ledger about letters, without a run.
type decision struct {
	*cli.Operator
	verb  string // "discard"
	done  string // "discarded"
	takes string // "open letter"
	// scope has the letters that the decision takes, and takesState their states
	scope      dlq.Scope
	takesState func(dlq.State) bool
	write      func(context.Context, *dlq.Ledger, dlq.Filter, dlq.Cursor, func(headers.Position, error)) (int64, error)
	// raced is what a run that begins meanwhile means for the letters
	raced string
}

// make counts the letters, asks, and records the decision.
func (d *decision) make(ctx context.Context, s *cli.Session, topic string, sel *selection.Selection, yes bool) error {
	f, frozen, err := subject.Choose(ctx, s, topic, sel)
	if err != nil {
		return err
	}
	ledger, err := subject.IdleLedger(ctx, s, f, subject.ToWrite, nil, []string{"WRITE"})
	if err != nil {
		return err
	}
	asked, err := d.find(ctx, s, ledger, sel, frozen)
	most := asked.Len()
	subject.WarnOfWhere(s.Tool, sel)
	switch {
	case err != nil:
		return subject.ReadFailed(topic, err) // what can't be read can't be asked about
	case most == 0:
		if how := resolved.Describe(ctx, ledger, &sel.Filter); how != "" {
			return cli.Refuse("nothing was %s: %s", d.done, how)
		}
		return cli.Refuse("nothing was %s: no %s of %s fits: redrive summary %s shows what is there", d.done, d.takes, topic, topic)
	}
	if !yes {
		if err := cli.Confirm(ctx, s.Tool, fmt.Sprintf("%s of %s will be %s", cli.Letters(most), topic, d.done), most); err != nil {
			return err
		}
	}
	if err := subject.StillIdle(ctx, ledger); err != nil {
		return err
	}
	if err := d.unchanged(ledger, topic, asked); err != nil {
		return err
	}
	filter, later := selection.Only(asked, sel.Filter)
	var written int64
	n, err := d.write(ctx, ledger, filter, frozen, func(headers.Position, error) {
		if written++; written%1000 == 0 {
			s.Screen.Status("%s %s", d.verb, output.Bar(written, most))
		}
	})
	if err != nil {
		if n > 0 {
			s.Screen.Print("%s of %s were %s before the error: run %s again for the rest", cli.Letters(n), topic, d.done, d.verb)
		}
		return cli.OnTopic("WRITE", ledger.Name(), err)
	}
	if *later > 0 {
		s.Screen.Print("not %s: %s of %s came to fit after the others were counted: run %s again for more", d.done, cli.Letters(*later), topic, d.verb)
	}
	if err := subject.StillIdle(ctx, ledger); err != nil {
		s.Screen.Warn("%v; %s: redrive show reports what became of a letter", err, d.raced)
	}
	return s.Screen.Object(
		output.NewField("topic", "TOPIC", topic),
		output.NewField(d.done, strings.ToUpper(d.done), n),
		output.NewField("by", "BY", d.By),
		output.NewField("why", "WHY", d.Why),
	)
}

// find finds the letters about which the operator will be asked.
func (d *decision) find(ctx context.Context, s *cli.Session, ledger *dlq.Ledger, sel *selection.Selection, until dlq.Cursor) (letterset.Set, error) {
	found, classes := letterset.Set{}, map[string]bool{}
	s.Screen.Status("counting letters of %s …", ledger.Topic())
	for l, err := range ledger.Letters(ctx, sel.Filter, until, d.scope) {
		if err != nil {
			return found, err
		}
		if l.State == dlq.Duplicate {
			continue
		}
		found.Add(letterset.At(l.Record.Partition, l.Record.Offset))
		classes[l.Meta.Class] = true
		if n := found.Len(); n%1000 == 0 {
			s.Screen.Status("counting letters of %s: %d", ledger.Topic(), n)
		}
	}
	subject.WarnOfClasses(s.Tool, ledger.Topic(), sel, maps.Keys(classes))
	return found, nil
}

// unchanged refuses if a letter has another state since the operator was asked.
func (d *decision) unchanged(ledger *dlq.Ledger, topic string, asked letterset.Set) error {
	var changed int64
	first := ""
	for at := range asked.All() {
		if state := ledger.State(at.Partition, at.Offset); !d.takesState(state) {
			if changed++; changed == 1 {
				first = fmt.Sprintf("%v is %s by now", at.In(topic), state)
			}
		}
	}
	if changed == 0 {
		return nil
	}
	return cli.Refuse("nothing was %s: %d of the %s changed since they were counted; %s: run %s again", d.done, changed, cli.Letters(asked.Len()), first, d.verb)
}
