package look

import (
	"fmt"
	"strings"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

func recordText(n *dlq.LedgerRecord, look output.Look) string {
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
	if e.Run != "" && e.State.Discards() { // By is the run's operator, not the discard's
		b.WriteString(" by the handler or its policy")
	} else {
		add(" by %s", e.By)
	}
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

// ledgerLines is the ledger's records, a line each, or empty.
func ledgerLines(records []*dlq.LedgerRecord, look output.Look) string {
	if len(records) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "ledger (%d):\n", len(records))
	for _, n := range records {
		fmt.Fprintf(&b, "  %s\n", output.Escape(recordText(n, look)))
	}
	return b.String() + "\n"
}

func entryFields(n *dlq.LedgerRecord) []output.Field {
	e := &n.Entry
	var at time.Time
	var state, wrong any = "open", nil
	if e.State != "" {
		state, at = string(e.State), e.At
	}
	if n.Err != nil {
		state, wrong = nil, n.Err.Error()
	}
	return []output.Field{
		output.NewField("state", "", state),
		output.NewField("at", "", at),
		output.NewField("run", "", output.OrNil(e.Run)),
		output.NewField("by", "", output.OrNil(e.By)),
		output.NewField("why", "", output.OrNil(e.Why)),
		output.NewField("target", "", output.PositionOf(e.Target)),
		output.NewField("class", "", output.OrNil(e.Class)),
		output.NewField("edited", "", e.Edited),
		output.NewField("error", "", wrong),
	}
}
