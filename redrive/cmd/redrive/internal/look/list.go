package look

// The verb that lists open dead letters, a page at a time.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/selection"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/subject"
)

// A listing is the flags of list besides the filters.
type listing struct {
	all, discarded bool
	limit          int
	cursor         string
	values         bool
}

// NewList makes the verb list.
func NewList(t *cli.Tool) *cobra.Command {
	var flags *selection.Flags
	var how listing
	cmd := &cobra.Command{
		Use:   "list TOPIC...",
		Short: "List open dead letters, a page at a time",
		Long: `List prints the open dead letters, or all of them, in the order of their partitions. Below a page it prints how to
continue. Letters that arrive after the first page are not on later pages.

--values prints the beginning of each letter's value below its row; in JSON it is the whole value, as in show --as json.
show prints all of a letter.

Several topics are one list, with a page of each and a column for the topic.

With --all it does not read the ledger, so it does not print the letters' states. show prints the state of one letter.

With --discarded it prints the records that consumers discarded instead. They are in no dead-letter topic; consumers note
them in its ledger if Policy.NoteDiscards is set. Of the filters it takes --class, --group, --attempts, --since and
--until; the last two are about the time of the discard.`,
		Example: `  redrive list orders.dlq
  redrive list orders.dlq --class http.503 --since 2h
  redrive list orders.dlq payments.dlq --since 10m
  redrive list orders.dlq --cursor v1/orders.dlq/0:50-312,1:7-298
  redrive list orders.dlq --class tax --values
  redrive list orders.dlq --limit 0 -o jsonl | jq -r .key
  redrive list orders.dlq --discarded --since 24h`,
		RunE: func(cmd *cobra.Command, args []string) error {
			sel, err1 := flags.Compile(t.Now())
			from, err2 := how.from(args)
			if how.discarded {
				err3 := errors.Join(onlyOfNotes(cmd.LocalFlags()), oneTopic(args))
				return t.With(cmd.Context(), func(s *cli.Session) error { return listDiscarded(cmd.Context(), s, args[0], sel, how.limit) }, err1, err2, err3)
			}
			return t.With(cmd.Context(), func(s *cli.Session) error { return listAll(cmd.Context(), s, args, sel, from, how) }, err1, err2)
		},
	}
	flags = cli.AddSelection(cmd)
	cmd.Flags().BoolVar(&how.all, "all", false, "include resolved letters and copies")
	cmd.Flags().BoolVar(&how.values, "values", false, "print the letters' values, too")
	cmd.Flags().BoolVar(&how.discarded, "discarded", false, "list the records that consumers discarded, by their notes in the ledger")
	cmd.Flags().IntVar(&how.limit, "limit", 50, "`number` of letters of each topic on a page; 0 for no limit")
	cmd.Flags().StringVar(&how.cursor, "cursor", "", "`place` to continue from, as printed below the last page; use the same filters")
	return cmd
}

// oneTopic refuses several topics.
func oneTopic(topics []string) error {
	if len(topics) > 1 {
		return errors.New("--discarded: name one topic")
	}
	return nil
}

// from is where the page begins: nil at the start.
func (l listing) from(topics []string) (*dlq.Cursor, error) {
	if l.limit < 0 {
		return nil, fmt.Errorf("--limit: %d is negative; 0 is no limit", l.limit)
	}
	if l.cursor == "" {
		return nil, nil
	}
	c, err := dlq.ParseCursor(l.cursor)
	switch {
	case err != nil:
		return nil, fmt.Errorf("--cursor: %w", err)
	case len(topics) > 1:
		return nil, errors.New("--cursor: it belongs to one topic, so name that topic alone")
	case c.Topic != topics[0]:
		return nil, fmt.Errorf("--cursor: it belongs to %s, not to %s", c.Topic, topics[0])
	case len(c.End) == 0: // it would read letters that arrived since
		return nil, errors.New("--cursor: it has no end: copy it from below the last page")
	}
	return &c, nil
}

// listAll lists the letters of topics, one after the other. An error about one leaves the others as
// they are.
func listAll(ctx context.Context, s *cli.Session, topics []string, sel *selection.Selection, from *dlq.Cursor, how listing) error {
	rows := s.Screen.List()
	var words []string // about what is not listed
	err := subject.OnEach(ctx, s, topics, func(topic string) (bool, error) {
		more, err := list(ctx, s, rows, topic, sel, from, how, len(topics) > 1)
		if more != "" {
			words = append(words, more)
		}
		return false, err
	})
	if cli.ExitCode(err) != cli.ExitUsage {
		err = errors.Join(err, rows.Close())
	}
	subject.WarnOfWhere(s.Tool, sel)
	for _, w := range words {
		s.Screen.Print("%s", w)
	}
	return err
}

// list lists a page of a topic's letters. more is how to continue, or that there are none.
func list(ctx context.Context, s *cli.Session, rows *output.List, topic string, sel *selection.Selection, from *dlq.Cursor, how listing, among bool) (more string, err error) {
	f, frozen, err := subject.Choose(ctx, s, topic, sel)
	if err != nil {
		return "", err
	}
	at := frozen
	if from != nil {
		at = *from
		has := func(r dlq.Range) bool { _, ok := at.End[r.Partition]; return ok }
		if ranges := sel.Filter.Ranges; len(ranges) > 0 && !slices.ContainsFunc(ranges, has) {
			return "", cli.Usage(errors.New("--cursor: the filters choose none of its partitions"))
		}
	}
	found, err := subject.Chosen(ctx, s, f, sel, at, how.all)
	if err != nil {
		return "", err
	}
	title := ""
	if among {
		title = "TOPIC"
	}
	var errs []error
	n, full := 0, false
	var unread cli.Unread
	defer unread.Warn(s.Tool)
	for l, err := range found {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		shown, redacted, as := cli.Read(ctx, s.Tool, l)
		unread.Add(l, as.Err())
		fields := append([]output.Field{output.NewField("topic", title, topic)}, letterFields(shown)...)
		if how.values {
			fields = append(fields, valueFields(shown, redacted)...)
		}
		if err := rows.Row(fields...); err != nil {
			return "", err
		}
		at.Advance(l)
		if n++; n == how.limit {
			full = true
			break
		}
	}
	switch {
	case full && !at.Done() && among:
		more = fmt.Sprintf("more letters of %s may follow: redrive list %s --cursor %s, with the same filters", topic, topic, at)
	case full && !at.Done():
		more = fmt.Sprintf("more letters may follow: continue with --cursor %s", at)
	case n == 0 && len(errs) == 0 && from == nil:
		more = subject.Nothing(topic, how.all)
	}
	return more, subject.ReadFailed(topic, errs...)
}

// mostOfValue is how many characters of a value a table shows, and how many bytes of a key.
const mostOfValue = 400

// valueFields are a letter's value, below its row.
func valueFields(l *dlq.Letter, redacted bool) []output.Field {
	value, encoding := output.AsJSON.Value(l.Record.Value)
	text := output.Brief(l.Record.Value, mostOfValue)
	if l.Meta.ValueOmitted {
		text = "(omitted since it did not fit)"
	}
	return []output.Field{
		output.NewField("value", "", output.Pair{Table: text, JSON: value}).Below(),
		output.NewField("encoding", "", encoding),
		output.NewField("redacted", "", redacted),
	}
}

// letterFields are a letter as a row.
func letterFields(l *dlq.Letter) []output.Field {
	field, m, r := output.NewField, &l.Meta, l.Record
	key, encoding := output.Text.Value(r.Key)
	var shown any
	if r.Key != nil {
		text := string(r.Key)
		if len(text) > mostOfValue { // without a terminal all rows are as wide as the widest
			text = text[:mostOfValue] + "…"
		}
		shown = output.Pair{Table: text, JSON: key}
	}
	return []output.Field{
		field("place", "PLACE", placeText(r.Partition, r.Offset)).Least(8),
		field("partition", "", r.Partition),
		field("offset", "", r.Offset),
		field("class", "CLASS", output.OrNil(m.Class)).Least(20),
		field("fingerprint", "", output.OrNil(m.Fingerprint)),
		field("reason", "REASON", output.OrNil(string(m.Reason))).Spare(3),
		field("dialect", "", output.OrNil(l.Dialect)),
		field("group", "GROUP", output.OrNil(m.Group)).Least(10).Spare(1),
		field("attempts", "ATTEMPTS", m.Attempts).Right().Spare(4),
		field("failedAt", "FAILED AT", l.FailedAt()).Spare(2),
		field("key", "KEY", shown).MayCut().Last(1).Least(16),
		field("keyEncoding", "", encoding),
		field("message", "MESSAGE", output.OrNil(m.Message)).MayCut().Last(2),
	}
}

func parsePlace(s string) (partition int32, offset int64, err error) {
	number, rest, ok := strings.Cut(s, ":")
	p, err1 := strconv.ParseUint(number, 10, 31)
	o, err2 := strconv.ParseUint(rest, 10, 63)
	if !ok || err1 != nil || err2 != nil {
		return 0, 0, fmt.Errorf("%q is not partition:offset, such as 3:41", s)
	}
	return int32(p), int64(o), nil
}

// placeText is a letter's place as list prints it and parsePlace reads it.
func placeText(partition int32, offset int64) string { return fmt.Sprintf("%d:%d", partition, offset) }

// ofNotes are the flags of list that choose among notes of discarded records.
var ofNotes = []string{"discarded", "class", "group", "attempts", "since", "until", "limit"}

// onlyOfNotes refuses flags that choose by what a note does not have.
func onlyOfNotes(flags *pflag.FlagSet) (err error) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed && !slices.Contains(ofNotes, f.Name) {
			err = errors.Join(err, fmt.Errorf("--%s: it is for dead letters; --discarded takes --class, --group, --attempts, --since, --until and --limit", f.Name))
		}
	})
	return err
}

// listDiscarded lists the records that consumers discarded.
func listDiscarded(ctx context.Context, s *cli.Session, topic string, sel *selection.Selection, limit int) error {
	ledger, err := subject.FindLedger(ctx, s, topic)
	if err != nil {
		return err
	}
	name := ledger.Name()
	s.Screen.Status("reading %s …", name)
	list := s.Screen.List()
	var failed error
	notes, more := 0, false
	classes := map[string]int64{} // of all that fit, also of those behind the limit
	for n, err := range ledger.DiscardNotes(ctx) {
		if cli.IsA[*dlq.EntryError](err) {
			s.Screen.Warn("%v", err)
			continue
		}
		if err != nil {
			failed = cli.OnTopic("READ", name, err)
			break
		}
		notes++
		if !sel.Filter.Selects(letterOf(n)) {
			continue
		}
		if _, known := classes[n.Class]; known || len(classes) < mostClasses {
			classes[n.Class]++
		} else {
			classes["(other)"]++
		}
		if more = limit > 0 && list.Rows() == limit; more && s.Screen.Format != output.Table {
			break
		} else if more {
			continue
		}
		if err := list.Row(noteFields(n)...); err != nil {
			return err
		}
	}
	if err := list.Close(); err != nil {
		return err
	}
	if err := s.Screen.Tables(classRows(classes)); err != nil {
		return err
	}
	switch {
	case more:
		s.Screen.Print("more discarded records follow: --limit 0 lists all")
	case failed != nil || list.Rows() > 0:
	case notes > 0:
		s.Screen.Print("of the discarded records that %s knows of, none fits", name)
	default:
		s.Screen.Print("%s has no notes of discarded records: consumers write them if Policy.NoteDiscards is set; prune --discarded-older-than and the ledger's retention delete them", name)
	}
	return failed
}

// mostClasses bounds the classes that have a number of their own.
const mostClasses = 1_000

// classRows is a row for each class of discarded records, the most frequent first.
func classRows(of map[string]int64) output.Rows {
	names := slices.SortedFunc(maps.Keys(of), func(a, b string) int { return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b)) })
	return output.RowsOf(names, func(class string) []output.Field {
		return []output.Field{output.NewField("count", "COUNT", of[class]).Right(), output.NewField("class", "CLASS", output.OrNil(class))}
	})
}

// letterOf is a letter with what a filter can know of a note.
func letterOf(n *dlq.DiscardNote) *dlq.Letter {
	return &dlq.Letter{
		Record: &kgo.Record{Partition: n.Partition, Offset: n.Offset, Timestamp: n.At},
		Meta:   headers.Meta{Group: n.Group, Class: n.Class, Attempts: n.Attempts, FailedAt: n.At, Original: n.Original},
	}
}

// noteFields are a note as a row.
func noteFields(n *dlq.DiscardNote) []output.Field {
	field := output.NewField
	return []output.Field{
		field("original", "ORIGINAL", output.PositionOf(n.Original)),
		field("partition", "", n.Partition),
		field("offset", "", n.Offset),
		field("class", "CLASS", output.OrNil(n.Class)),
		field("group", "GROUP", output.OrNil(n.Group)).Spare(1),
		field("attempts", "ATTEMPTS", n.Attempts).Right().Spare(2),
		field("discardedAt", "DISCARDED AT", n.At),
	}
}
