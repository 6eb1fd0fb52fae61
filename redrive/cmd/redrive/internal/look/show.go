package look

// The verb that shows one dead letter: why it is there, its headers and its value.

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
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
				ledger, err := subject.FindLedger(cmd.Context(), s, args[0])
				if err != nil {
					return err
				}
				l, records, err := ledger.Find(cmd.Context(), partition, offset)
				if l == nil {
					if len(records) > 0 {
						err = fmt.Errorf("%w; the ledger still records: %s", err, recordText(records[len(records)-1], t.Screen.Look))
					}
					return cli.OnTopic("READ", ledger.Topic(), err)
				}
				var state any = cmp.Or(string(l.State), "open")
				if err != nil {
					t.Screen.Warn("the letter's state is not known: %v", cli.OnTopic("READ", ledger.Name(), err))
					state = nil
				}
				var near *neighbourhood
				if around > 0 {
					if near, err = findAround(cmd.Context(), s, l.Meta.Original, around); err != nil {
						near.missing = fmt.Sprintf("the source can't be read: %v", err)
					}
				}
				return showLetter(cmd.Context(), t, l, state, records, near, as)
			}, err, err2)
		},
	}
	cmd.Flags().Int64Var(&around, "around", 0, "also show the records at this `number` of offsets before and after it on the source")
	cmd.Flags().Var(output.Choice[output.Rendering]{To: &as, From: output.Renderings, Kind: "form"}, "as", "`form` of key, value and headers: "+strings.Join(output.Renderings, ", "))
	cli.Complete(cmd, "as", cobra.FixedCompletions(output.Renderings, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// showLetter prints a letter, its state and the ledger's records about it.
func showLetter(ctx context.Context, t *cli.Tool, whole *dlq.Letter, state any, records []*dlq.LedgerRecord, near *neighbourhood, as output.Rendering) error {
	l, redacted, how := cli.Read(ctx, t, whole)
	if as == output.Hex && t.Redaction == nil {
		l = whole
	}
	if err := how.Err(); err != nil {
		t.Screen.Warn("not decoded: %v", err)
	}
	records = t.Redaction.Records(records)
	size := fmt.Sprintf("%d bytes", len(whole.Record.Value))
	if how.Value != nil {
		size += " of " + schemaText(how.Value)
	}
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
		return near.show(ctx, t)
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
	if t.Codec != nil {
		fields = append(fields, output.NewField("keySchema", "", schemaField(how.Key)), output.NewField("schema", "", schemaField(how.Value)))
	}
	if near != nil {
		fields = append(fields, output.NewField("around", "", near.rows(ctx, t)), output.NewField("aroundMissing", "", output.OrNil(near.missing)))
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
		output.NewField("dialect", "DIALECT", output.OrNil(l.Dialect)),
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

// How much of a letter is shown to people, in bytes: of its value, of its key and of its headers;
// and of one header.
const (
	mostOfPart   = 512 << 10
	mostOfHeader = 16 << 10
)

func headerLines(l *dlq.Letter, as output.Rendering) string {
	var b strings.Builder
	fmt.Fprintf(&b, "key:\n%s\n\nheaders (%d):\n", indent(as.Lines(l.Record.Key, mostOfPart)), len(l.Record.Headers))
	for i, h := range l.Record.Headers {
		if b.Len() > 2*mostOfPart {
			fmt.Fprintf(&b, "  … and %d more, which --output json has\n", len(l.Record.Headers)-i)
			break
		}
		key, value := output.Escape(h.Key[:min(len(h.Key), mostOfHeader)]), as.OfHeaders().Lines(h.Value, mostOfHeader)
		if !strings.Contains(value, "\n") {
			fmt.Fprintf(&b, "  %s: %s\n", key, value)
			continue
		}
		fmt.Fprintf(&b, "  %s:\n%s\n", key, indent(indent(value)))
	}
	return b.String()
}

func valueLines(l *dlq.Letter, as output.Rendering, size string) string {
	if l.Meta.ValueOmitted {
		return fmt.Sprintf("value: omitted since it did not fit; the original is at %s\n", output.Escape(l.Meta.Original.String()))
	}
	return fmt.Sprintf("value, %s:\n%s\n", size, indent(as.Lines(l.Record.Value, mostOfPart)))
}

func indent(s string) string { return "  " + strings.ReplaceAll(s, "\n", "\n  ") }

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
