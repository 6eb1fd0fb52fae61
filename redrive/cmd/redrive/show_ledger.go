package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

// A letterOutcome is what the ledger has about a letter.
type letterOutcome struct {
	known bool // the ledger could be read
	state dlq.State
	notes []*dlq.LedgerRecord
}

// readOutcome reads the entries about one letter, whether the topic still has the letter or not.
func readOutcome(ctx context.Context, s *session, f sibling, partition int32, offset int64) (letterOutcome, error) {
	name, err := ledgerName(s.Naming, f)
	if err != nil {
		return letterOutcome{}, err
	}
	l, notes, err := dlq.NewLedger(f.topic, name, s.opts...).Find(ctx, partition, offset)
	switch {
	case errors.Is(err, dlq.ErrNoLetter):
		return letterOutcome{notes: notes}, nil
	case err != nil:
		return letterOutcome{}, onTopic("READ", name, err)
	}
	return letterOutcome{known: true, state: l.State, notes: notes}, nil
}

// last is the last entry in words, or empty.
func (f letterOutcome) last(look output.Look) string {
	if len(f.notes) == 0 {
		return ""
	}
	return noteText(f.notes[len(f.notes)-1], look)
}

// name is the state in one word, nil where it is not known.
func (f letterOutcome) name() any {
	switch {
	case !f.known:
		return nil
	case f.state == "":
		return "open"
	}
	return string(f.state)
}

func noteText(n *dlq.LedgerRecord, look output.Look) string {
	e := &n.Entry
	switch {
	case n.Err != nil:
		return fmt.Sprintf("unreadable: %v", n.Err)
	case e.State == "":
		return "open again: the entries before are withdrawn"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s at %s", e.State, look.Time(e.At))
	add := func(form, text string) {
		if text != "" {
			fmt.Fprintf(&b, form, text)
		}
	}
	add(", run %s", e.Run)
	add(" by %s", e.By)
	switch {
	case e.Target.Topic == "":
	case e.State == dlq.Duplicate:
		add(" of %s", e.Target.String())
	default:
		add(", to %s", e.Target.String())
	}
	add(", with %s", e.Class)
	add(", edited: %s", strings.Join(e.Edited, " and "))
	add(": %s", e.Why)
	return b.String()
}

// lines is the entries, a line each, or empty.
func (f letterOutcome) lines(look output.Look) string {
	if len(f.notes) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "ledger (%d):\n", len(f.notes))
	for _, n := range f.notes {
		fmt.Fprintf(&b, "  %s\n", output.Escape(noteText(n, look)))
	}
	return b.String() + "\n"
}

func entryFields(n *dlq.LedgerRecord) []output.Field {
	e := &n.Entry
	var at time.Time
	var state, target, wrong any = "open", nil, nil
	if e.State != "" {
		state, at = string(e.State), e.At
	}
	if e.Target.Topic != "" {
		target = e.Target.String()
	}
	if n.Err != nil {
		state, wrong = nil, n.Err.Error()
	}
	return []output.Field{
		output.NewField("state", "", state),
		output.NewField("at", "", at),
		output.NewField("run", "", orNil(e.Run)),
		output.NewField("by", "", orNil(e.By)),
		output.NewField("why", "", orNil(e.Why)),
		output.NewField("target", "", target),
		output.NewField("class", "", orNil(e.Class)),
		output.NewField("edited", "", e.Edited),
		output.NewField("error", "", wrong),
	}
}
