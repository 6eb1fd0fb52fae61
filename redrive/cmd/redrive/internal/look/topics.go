package look

// The verb that lists the dead-letter topics of the cluster, or the retry topics.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/subject"
	"github.com/sidingkafka/siding/retrytopics"
)

// NewTopics makes the verb topics.
func NewTopics(t *cli.Tool) *cobra.Command {
	var how survey
	cmd := &cobra.Command{
		Use:   "topics",
		Short: "List the dead-letter topics of the cluster, or the retry topics",
		Long: `Topics lists the cluster's dead-letter topics, as far as their names follow the naming: the topic with the most open
letters first. It reads the topics and their ledgers, and counts the letters that are open, pending or resolved. It also
shows when the oldest open letter was written, the most frequent class, the groups that failed, and the state of those
that consume the source. Topics without open and pending letters are one line below the table; --all lists them, and
JSON always has them. A line below a topic says which groups hold records of its source back, since when, and why.

Brokers know how many letters came within the last hour, and when retention may delete the next one. That number is by
offsets, so transaction markers count too. Retention deletes a letter later while younger letters share its segment.
--quick shows what brokers know, and reads no topic.

With --parked it lists the retry topics instead, a line for each consumer group that reads one. The line has the number
of records that are parked there for the group, waiting or due. Groups may share a retry topic, so it reads which group
each record names. Beyond 100,000 records, or if the user may not read them, it counts offsets, with transaction markers
and the records of other groups: <= marks such a number (exact is false in JSON).`,
		Example: `  redrive topics
  redrive topics --filter 'payments*'
  redrive topics --quick
  redrive topics --parked
  redrive topics -o json | jq '.[] | select(.lastHour > 0) | .topic'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return t.With(cmd.Context(), func(s *cli.Session) error {
				if how.parked {
					return listParked(cmd.Context(), s, how)
				}
				return listDeadLetterTopics(cmd.Context(), s, how)
			}, how.check())
		},
	}
	cmd.Flags().StringArrayVar(&how.filters, "filter", nil, "`pattern` of the topics' names, as in 'payments*', or a part of the name; repeat for several")
	cmd.Flags().BoolVar(&how.all, "all", false, "topics without open letters, too")
	cmd.Flags().BoolVar(&how.parked, "parked", false, "the retry topics, with the records that each group has parked there")
	cmd.Flags().BoolVar(&how.quick, "quick", false, "only what the brokers know, without reading the topics")
	return cmd
}

func listDeadLetterTopics(ctx context.Context, s *cli.Session, how survey) error {
	found, err := how.choose(ctx, s, retrytopics.KindDLQ)
	if err != nil {
		return err
	}
	stats, problems := readTopicStats(ctx, s, subject.Names(found), s.Now())
	found = slices.DeleteFunc(found, func(f subject.Sibling) bool {
		if stats[f.Topic].compacted {
			problems = append(problems, errors.New(subject.Compacted(f.Topic)))
		}
		return stats[f.Topic].compacted
	})
	sourceGone := missingSources(ctx, s, found)
	var sources []string
	for _, f := range found {
		sources = append(sources, f.Source)
	}
	held, err := readConsumed(ctx, s, sources)
	if err != nil {
		problems = append(problems, err)
	}
	contents := map[string]topicContents{}
	if !how.quick {
		var more []error
		contents, more = readContents(ctx, s, found, stats)
		problems = append(problems, more...)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	weight := func(f subject.Sibling) int64 {
		if how.quick {
			return numberOr(stats[f.Topic].total, 0)
		}
		return numberOr(contents[f.Topic].open, 0)
	}
	slices.SortStableFunc(found, func(a, b subject.Sibling) int { return cmp.Compare(weight(b), weight(a)) })
	var rows output.Rows
	for _, f := range found {
		if s.Screen.Format != output.Table || how.all || held[f.Source].isBad() || !empty(stats[f.Topic], contents[f.Topic], how.quick) {
			rows = append(rows, topicFields(f, sourceGone[f.Source], held[f.Source], stats[f.Topic], contents[f.Topic], s.Now(), how.quick))
		}
	}
	err = s.Screen.Rows(rows)
	if n := len(found) - len(rows); n > 0 {
		s.Screen.Print("%s", folded(n, len(rows), how.quick))
	}
	warnOfProblems(s.Tool, problems)
	return err
}

// numberOr is the number in a cell, or another one where it is not known.
func numberOr(cell any, unknown int64) int64 {
	if n, ok := cell.(int64); ok {
		return n
	}
	return unknown
}

// empty reports whether a topic is known to have nothing that needs an operator.
func empty(stats topicStats, contents topicContents, quick bool) bool {
	if quick {
		return numberOr(stats.total, 1) == 0
	}
	return numberOr(contents.open, 1) == 0 && numberOr(contents.pending, 1) == 0
}

// folded is the line for topics that have no row.
func folded(n, shown int, quick bool) string {
	nothing := "no open and no pending letters"
	if quick {
		nothing = "no letters"
	}
	switch {
	case shown == 0 && n > 1:
		return fmt.Sprintf("all %d topics have %s: --all lists them", n, nothing)
	case n == 1:
		return fmt.Sprintf("1 topic has %s: --all lists it", nothing)
	}
	return fmt.Sprintf("%d topics have %s: --all lists them", n, nothing)
}

// topicFields are a topic as a row. JSON has the same fields, whether the topic was read or not. A
// table has no columns for what was not asked for.
func topicFields(f subject.Sibling, sourceGone any, by consumed, stats topicStats, contents topicContents, now time.Time, quick bool) []output.Field {
	gone := output.Pair{JSON: sourceGone}
	if sourceGone == true {
		gone.Table = "its source is gone"
	}
	unless := func(omitted bool, title string) string {
		if omitted {
			return ""
		}
		return title
	}
	field := output.NewField
	return []output.Field{
		field("topic", "TOPIC", f.Topic),
		field("source", "", f.Source),
		field("sourceGone", "", gone).Below(),
		field("partitions", "", f.Partitions),
		field("letters", unless(!quick, "LETTERS"), stats.total).Right(),
		field("open", unless(quick, "OPEN"), contents.open).Right(),
		field("pending", unless(quick, "PENDING"), contents.pending).Right().Spare(5),
		field("resolved", unless(quick, "RESOLVED"), contents.resolved).Right().Spare(6),
		field("oldestOpen", unless(quick, "OLDEST OPEN"), contents.oldestOpen).Spare(2),
		field("topClass", unless(quick, "TOP CLASS"), contents.topClass).Spare(1),
		field("groups", unless(quick, "GROUPS"), contents.groups).MayCut().Spare(4),
		field("lastHour", "LAST HOUR", stats.recent).Right().Spare(3),
		field("retentionMs", "KEPT FOR", stats.kept()).Spare(7),
		field("nextExpiry", "NEXT EXPIRY", stats.expiry(now)),
		field("consumers", "CONSUMERS", by.cell()).MayCut().Spare(2),
		field("guards", "", by.lines(now)).Below(),
	}
}

// topicContents are cells that only reading a topic and its ledger can fill. All are nil where not
// all could be read.
type topicContents struct{ open, pending, resolved, oldestOpen, topClass, groups any }

// readContents reads topics, except those that are empty by their offsets. An error about one topic
// leaves the others as they are.
func readContents(ctx context.Context, s *cli.Session, found []subject.Sibling, stats map[string]topicStats) (map[string]topicContents, []error) {
	contents := map[string]topicContents{}
	var ledgers []*dlq.Ledger
	var problems []error
	for _, f := range found {
		if stats[f.Topic].gone {
			continue
		}
		if numberOr(stats[f.Topic].total, 1) == 0 {
			contents[f.Topic] = contentsOf(&dlq.Summary{})
		} else if l, err := subject.LedgerOf(s, f); err != nil {
			problems = append(problems, err)
		} else {
			ledgers = append(ledgers, l)
		}
	}
	for _, r := range dlq.SummarizeAll(ctx, ledgers, cli.Progress(s.Tool, fmt.Sprintf("reading %d topics", len(ledgers)))) {
		newer := errors.Is(r.Err, dlq.ErrNewerVersion)
		if isUnknownTopic(r.Err) {
			problems = append(problems, unknownTopic(r.About))
			continue
		}
		if r.Err != nil && !newer {
			problems = append(problems, cli.OnTopic("READ", r.About, r.Err))
			continue // half of a topic is no news
		}
		if newer {
			s.Screen.Warn("%v; these letters count as open", r.Err)
		} else {
			subject.WarnOfBroken(s.Tool, r.Ledger)
		}
		contents[r.Ledger.Topic()] = contentsOf(r.Summary)
	}
	return contents, problems
}

func contentsOf(sum *dlq.Summary) topicContents {
	oldest, _ := sum.Oldest()
	groups := []string{}
	for _, g := range sum.Groups {
		switch {
		case g.Folded:
			groups = append(groups, "(other)")
		case g.Group != "":
			groups = append(groups, g.Group)
		}
	}
	return topicContents{sum.Open, sum.Pending, sum.Resolved, output.Ago(oldest.Oldest), output.OrNil(topClass(sum)), groups}
}

// topClass is the class of the most open letters, whatever their fingerprints; of several classes
// the first by name, and empty where none has one.
func topClass(sum *dlq.Summary) (top string) {
	counts := map[string]int64{}
	for _, f := range sum.Failures {
		counts[f.Class] += f.Count
	}
	delete(counts, "")
	for class, n := range counts {
		if cmp.Or(cmp.Compare(n, counts[top]), cmp.Compare(top, class)) > 0 {
			top = class
		}
	}
	return top
}

// missingSources reports for each source topic whether it is missing. A list of all topics omits
// what the user may not see, so it asks for those that are not in the list. A source of which
// nothing is known is not in the answer.
func missingSources(ctx context.Context, s *cli.Session, all []subject.Sibling) map[string]any {
	known := map[string]any{}
	// not by kadm, which returns no topic where the user may not see one
	req := kmsg.NewPtrMetadataRequest()
	for _, f := range all {
		if known[f.Source] = false; !f.SourceListed {
			delete(known, f.Source)
			t := kmsg.NewMetadataRequestTopic()
			t.Topic = kmsg.StringPtr(f.Source)
			req.Topics = append(req.Topics, t)
		}
	}
	if len(req.Topics) == 0 {
		return known
	}
	resp, err := req.RequestWith(ctx, s.Client)
	if err != nil {
		return known
	}
	for _, t := range resp.Topics {
		if missing := t.ErrorCode == kerr.UnknownTopicOrPartition.Code; t.Topic != nil && (missing || t.ErrorCode == 0) {
			known[*t.Topic] = missing
		}
	}
	return known
}
