package look

import (
	"fmt"
	"io"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

// showLetter prints a letter, its state and the ledger's records about it.
func showLetter(t *cli.Tool, whole *dlq.Letter, state any, records []*dlq.LedgerRecord, near *neighbourhood, as output.Rendering) error {
	l, redacted := t.Redaction.Letter(whole)
	records = t.Redaction.Records(records)
	size := fmt.Sprintf("%d bytes", len(whole.Record.Value))
	if redacted {
		size += ", redacted"
	}
	fields := append(shownFields(l), output.NewField("state", "STATE", state).Toned(letterTone(state)))
	if t.Screen.Format == output.Table {
		if err := t.Screen.Object(fields...); err != nil {
			return err
		}
		for _, part := range []string{"\n", historyLines(l.Meta.History, t.Screen.Look), ledgerLines(records, t.Screen.Look), headerLines(l, as), "\n", valueLines(l, as, size)} {
			if _, err := io.WriteString(t.Screen.Data(), part); err != nil {
				return err
			}
		}
		if near == nil {
			return nil
		}
		return near.show(t)
	}
	key, keyEncoding := as.Value(l.Record.Key)
	value, encoding := as.Value(l.Record.Value)
	fields = append(fields,
		output.NewField("ledger", "", output.RowsOf(records, entryFields)),
		output.NewField("key", "", key),
		output.NewField("keyEncoding", "", keyEncoding),
		output.NewField("headers", "", output.RowsOf(l.Record.Headers, func(h kgo.RecordHeader) []output.Field { return output.HeaderFields(h.Key, h.Value, as) })),
		output.NewField("value", "", value),
		output.NewField("encoding", "", encoding),
		output.NewField("redacted", "", redacted),
	)
	if near != nil {
		fields = append(fields, output.NewField("around", "", near.rows(t)), output.NewField("aroundMissing", "", output.OrNil(near.missing)))
	}
	return t.Screen.Object(fields...)
}

// letterTone is how an operator should take a letter's state.
func letterTone(state any) output.Tone {
	switch state {
	case string(dlq.Succeeded):
		return output.Good
	case string(dlq.Failed), string(dlq.Expired):
		return output.Bad
	case string(dlq.Redriven):
		return output.Busy
	case "open", string(dlq.Unknown):
		return output.Caution
	}
	return ""
}

// shownFields is what is known of a letter besides its bytes.
func shownFields(l *dlq.Letter) []output.Field {
	m, r := &l.Meta, l.Record
	var unread any
	if l.MetaErr != nil {
		unread = l.MetaErr.Error()
	}
	return []output.Field{
		output.NewField("topic", "TOPIC", r.Topic),
		output.NewField("partition", "PARTITION", r.Partition),
		output.NewField("offset", "OFFSET", r.Offset),
		output.NewField("appendedAt", "APPENDED", r.Timestamp),
		output.NewField("original", "ORIGINAL", output.PositionOf(m.Original)),
		output.NewField("originalTimestamp", "PRODUCED", m.Original.Timestamp),
		output.NewField("group", "GROUP", output.OrNil(m.Group)),
		output.NewField("reason", "REASON", output.OrNil(string(m.Reason))),
		output.NewField("class", "CLASS", output.OrNil(m.Class)),
		output.NewField("fingerprint", "FINGERPRINT", output.OrNil(m.Fingerprint)),
		output.NewField("message", "MESSAGE", output.OrNil(m.Message)),
		output.NewField("attempts", "ATTEMPTS", m.Attempts),
		output.NewField("firstFailedAt", "FIRST FAILED", m.FirstFailedAt),
		output.NewField("failedAt", "LAST FAILED", m.FailedAt),
		output.NewField("history", "", output.RowsOf(m.History, attemptFields)),
		output.NewField("redriveId", "REDRIVEN BY", output.OrNil(m.Redrive.ID)),
		output.NewField("redriveCount", "REDRIVEN", output.Pair{Table: timesText(m.Redrive.Count), JSON: m.Redrive.Count}),
		output.NewField("redriveFrom", "REDRIVEN FROM", output.PositionOf(m.Redrive.From)),
		output.NewField("redriveAt", "REDRIVEN AT", m.Redrive.At),
		output.NewField("redriveMaxAttempts", "MAX ATTEMPTS", output.UnlessZero(m.Redrive.MaxAttempts)),
		output.NewField("consumerVersion", "VERSION", output.OrNil(m.Version)),
		output.NewField("environment", "ENVIRONMENT", output.OrNil(m.Environment)),
		output.NewField("host", "HOST", output.OrNil(m.Host)),
		output.NewField("valueOmitted", "VALUE OMITTED", output.UnlessZero(m.ValueOmitted)),
		output.NewField("headersError", "UNREADABLE", unread),
	}
}

func timesText(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// historyLines is the failed calls, a line each, or empty. The attempts of a redriven letter begin
// again.
func historyLines(all []headers.Attempt, look output.Look) string {
	if len(all) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "history (%d):\n", len(all))
	for i, a := range all {
		if i > 0 && (a.Number < all[i-1].Number || a.Number == all[i-1].Number && a.Run <= all[i-1].Run) {
			b.WriteString("  redriven\n")
		}
		fmt.Fprintf(&b, "  %s: %s", callText(a), output.Escape(a.Class))
		if a.Verdict != "" {
			fmt.Fprintf(&b, " (%s)", a.Verdict)
		}
		fmt.Fprintf(&b, " at %s", look.Time(a.At))
		if a.Message != "" {
			fmt.Fprintf(&b, ": %s", output.Escape(a.Message))
		}
		b.WriteByte('\n')
	}
	return b.String() + "\n"
}

// callText is the number of a call: the attempt's, and that of the call within it.
func callText(a headers.Attempt) string {
	if a.Run == 0 {
		return fmt.Sprint(a.Number)
	}
	return fmt.Sprintf("%d.%d", a.Number, a.Run)
}

func attemptFields(a headers.Attempt) []output.Field {
	return []output.Field{
		output.NewField("attempt", "", a.Number), output.NewField("run", "", output.UnlessZero(a.Run)), output.NewField("class", "", a.Class),
		output.NewField("at", "", a.At), output.NewField("verdict", "", output.OrNil(a.Verdict)), output.NewField("message", "", output.OrNil(a.Message)),
	}
}
