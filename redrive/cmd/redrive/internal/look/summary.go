package look

// The verb that counts the open dead letters by their failures.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/selection"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/subject"
)

// NewSummary makes the verb summary.
func NewSummary(t *cli.Tool) *cobra.Command {
	var flags *selection.Flags
	var by []string
	cmd := &cobra.Command{
		Use:   "summary TOPIC...",
		Short: "Count the open dead letters by what failed",
		Long: `Summary reads a dead-letter topic once and counts the open letters by class and fingerprint of their error. Each row
has their number, the groups that failed if there are several, when the first and the last failed, and the message of
the first. Below it stands where in the code the first failed, and in which process and release. A class with several
fingerprints has a row with its total before them. A crash of a consumer may write copies of a letter; summary counts
them once.

It lists up to 1,000 pairs of class and fingerprint, and counts the others as (other).

--by 10m also counts the open letters by the time of their failure, up to 1,000 times, and draws them. --by
header:tenant or --by value.customer counts them by a header, or a member of their values in JSON, and lists the ten
largest: whom it hurts. With more than 10,000 different values the counts are estimates, with what is certain beside
them. Both may be given.

Several topics are one summary after the other: with -o json an array, with -o jsonl a line each.`,
		Example: `  redrive summary orders.dlq
  redrive summary orders.dlq --by 10m --by header:tenant
  redrive summary orders.dlq --class tax.TableMiss --by value.customer
  redrive summary orders.dlq payments.dlq --since 2h
  redrive summary orders.dlq --since 2h --group billing
  redrive summary orders.dlq -o json | jq '.failures[] | [.count, .class]'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			sel, err1 := flags.Compile(t.Now())
			counted, err2 := parseBy(by)
			return t.With(cmd.Context(), func(s *cli.Session) error { return summarizeAll(cmd.Context(), s, args, sel, counted) }, err1, err2)
		},
	}
	flags = cli.AddSelection(cmd)
	cmd.Flags().StringArrayVar(&by, "by", nil, "also count by the time of failure, in steps such as 10m, or by a `field`: header:tenant, value.customer")
	return cmd
}

// summarizeAll summarizes topics, one after the other.
func summarizeAll(ctx context.Context, s *cli.Session, topics []string, sel *selection.Selection, by counting) error {
	err := subject.EachTopic(ctx, s, topics, func(topic string, show func(...output.Field) error) error {
		sum, of, err := summarize(ctx, s, topic, sel, by)
		if sum == nil || ctx.Err() != nil {
			return err
		}
		// The counts of the other partitions are useful where one can't be read.
		if err := showSummary(s.Tool, sum, of, by, show); err != nil {
			return err
		}
		// A mistyped class looks like a class without open letters.
		if classes := sel.Filter.Classes; err == nil && sum.Open == 0 && len(classes) > 0 {
			s.Screen.Print("no open letter fits --class %s: redrive summary %s shows the classes there are", strings.Join(classes, ","), topic)
		}
		return err
	})
	subject.WarnOfWhere(s.Tool, sel)
	return err
}

func summarize(ctx context.Context, s *cli.Session, topic string, sel *selection.Selection, by counting) (sum *dlq.Summary, of consumed, err error) {
	f, frozen, err := subject.Choose(ctx, s, topic, sel)
	if err != nil {
		return nil, of, err
	}
	ledger, err := subject.ReadLedger(ctx, s, f, subject.ToInspect)
	if err != nil {
		return nil, of, err
	}
	var undecoded cli.Unread
	sum, err = ledger.SummarizeBy(ctx, sel.Filter, frozen, by.of(ctx, s, &undecoded), cli.Progress(s.Tool, "reading "+topic))
	undecoded.Warn(s.Tool)
	if sum != nil {
		for i := range sum.Failures {
			f := &sum.Failures[i]
			f.Sample = s.Redact.Message(f.Sample)
			f.Host, f.Version = s.Redact.Consumer(f.Host, f.Version)
		}
	}
	all, unread := readConsumed(ctx, s, []string{f.Source})
	if unread != nil && ctx.Err() == nil {
		s.Screen.Warn("%v", unread)
	}
	return sum, all[f.Source], subject.ReadFailed(topic, err)
}

func showSummary(t *cli.Tool, sum *dlq.Summary, of consumed, by counting, show func(...output.Field) error) error {
	groups := output.RowsOf(sum.Groups, groupFields)
	fields := append(totals(sum),
		output.NewField("failures", "", output.RowsOf(sum.Failures, failureFields(sum))),
		output.NewField("classes", "", output.RowsOf(sum.Classes(), classFields)),
		output.NewField("groups", "", groups),
		output.NewField("partitions", "", output.RowsOf(sum.Partitions, partitionFields)),
		output.NewField("consumers", "CONSUMERS", of.cell()),
		output.NewField("guards", "HELD BACK", of.lines(t.Now())),
		output.NewField("dialects", "", output.Pair{JSON: output.OrEmpty(sum.Dialects)}),
	)
	if by.times > 0 {
		fields = append(fields, output.NewField("byMs", "", by.times), output.NewField("times", "", output.RowsOf(sum.Times, timeFields)))
	}
	if by.field != nil {
		fields = append(fields, output.NewField("by", "", by.text), output.NewField("values", "", valuesJSON(sum.Values)))
	}
	if err := show(fields...); err != nil {
		return err
	}
	return t.Screen.Tables(foldFailures(sum), groups, by.rows(sum.Values), drawTimes(sum.Times, by.times))
}

func totals(sum *dlq.Summary) []output.Field {
	oldest, _ := sum.Oldest()
	return []output.Field{
		output.NewField("topic", "TOPIC", sum.Topic),
		output.NewField("open", "OPEN", sum.Open),
		output.NewField("pending", "PENDING", output.Explained(sum.Pending, ": redriven, without a recorded outcome; redrive runs "+sum.Topic+" names the run, status RUN shows what is known by now, plan records it")),
		output.NewField("resolved", "RESOLVED", output.Pair{Table: resolvedText(sum), JSON: sum.Resolved}),
		output.NewField("resolvedAs", "", sum.ResolvedAs),
		output.NewField("duplicates", "DUPLICATES", sum.Duplicates),
		output.NewField("foreign", "FOREIGN", output.Pair{Table: foreignText(sum), JSON: sum.Foreign}),
		output.NewField("malformed", "MALFORMED", output.UnlessZero(sum.Malformed)),
		output.NewField("oldest", "OLDEST OPEN", output.Ago(oldest.Oldest)),
	}
}

// resolvedText is the number of resolved letters, and how many of them have which state.
func resolvedText(sum *dlq.Summary) string {
	text := strconv.FormatInt(sum.Resolved, 10)
	for i, state := range slices.Sorted(maps.Keys(sum.ResolvedAs)) {
		text += fmt.Sprintf("%s%d %s", []string{": ", ", "}[min(i, 1)], sum.ResolvedAs[state], state)
	}
	return text
}

// foreignText is the number of letters of other programs, and how many of them have which dialect;
// empty without any.
func foreignText(sum *dlq.Summary) string {
	if sum.Foreign == 0 {
		return ""
	}
	text := strconv.FormatInt(sum.Foreign, 10)
	for i, name := range slices.Sorted(maps.Keys(sum.Dialects)) {
		text += fmt.Sprintf("%s%d %s", []string{": ", ", "}[min(i, 1)], sum.Dialects[name], name)
	}
	return text
}

const (
	mostDrawn  = 100 // rows of a drawing, the latest
	shortGap   = 3   // times without a failure that have a row each
	longestBar = 40  // characters
)

// drawTimes is a bar for each time, as characters that any terminal has. Times without failures
// have rows too, so that the gaps show, and many of them one row.
func drawTimes(times []dlq.TimeCount, by time.Duration) (rows output.Rows) {
	most := int64(1)
	for _, c := range times {
		if !c.Earlier {
			most = max(most, c.Open)
		}
	}
	row := func(from, open any, bar string) {
		rows = append(rows, []output.Field{
			output.NewField("", "FAILED FROM", from), output.NewField("", "COUNT", open).Right(),
			output.NewField("", fmt.Sprintf("IN %s EACH", output.Duration(by)), bar).MayCut(),
		})
	}
	before := int64(0)
	if left := len(times) - mostDrawn; left > 0 {
		for _, c := range times[:left] {
			before += c.Open
		}
		times = times[left:]
	} else if len(times) > 0 && times[0].Earlier {
		before, times = times[0].Open, times[1:]
	}
	if before > 0 {
		row("earlier", before, " ")
	}
	for i, c := range times {
		if i > 0 {
			last := times[i-1].From
			gap := int(c.From.Sub(last)/by) - 1
			if gap > shortGap {
				row(nil, nil, fmt.Sprintf("%s without failures", output.Duration(time.Duration(gap)*by)))
			} else {
				for n := range gap {
					row(last.Add(time.Duration(n+1)*by), int64(0), " ")
				}
			}
		}
		// A time with a failure never looks like one without.
		row(c.From, c.Open, strings.Repeat("#", max(1, int(c.Open*longestBar/most))))
	}
	return rows
}
