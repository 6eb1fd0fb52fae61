package look

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/selection"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/subject"
)

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
