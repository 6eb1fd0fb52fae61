package subject

// The letters that a verb is about.

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/selection"
	"github.com/sidingkafka/siding/serve/payload"
)

// Choose finds the topic of the letters that a verb is about, and its end when the verb began.
func Choose(ctx context.Context, s *cli.Session, topic string, sel *selection.Selection) (f Sibling, frozen dlq.Cursor, err error) {
	if s.Codec != nil {
		sel.Decode = func(l *dlq.Letter) *dlq.Letter { read, _ := payload.Letter(ctx, s.Codec, l); return read }
	}
	f, err = FindTopic(ctx, s, topic)
	if err != nil {
		return f, frozen, err
	}
	if gone := sel.Missing(int32(f.Partitions)); len(gone) > 0 {
		return f, frozen, cli.Usage(fmt.Errorf("%s has no partition %d: it has %d, from 0 on", topic, gone[0], f.Partitions))
	}
	frozen, err = dlq.Freeze(ctx, topic, s.Kafka...)
	return f, frozen, cli.OnTopic("DESCRIBE", topic, err)
}

// WarnOfWhere warns of letters on which the expression of --where failed.
func WarnOfWhere(t *cli.Tool, sel *selection.Selection) {
	// The text of such an error may quote what it is about.
	if d := sel.WhereProblem(t.Redaction == nil); d != "" {
		t.Screen.Warn("%s", d)
	}
}

// WarnOfClasses warns of the classes of --class that none of the letters has: one with a typo looks
// like a class without letters. With no letter at all the verb itself reports that.
func WarnOfClasses(t *cli.Tool, topic string, sel *selection.Selection, has iter.Seq[string]) {
	classes := slices.Collect(has)
	if slices.Contains(classes, "") { // a plan has no class of letters of other programs
		return
	}
	for _, c := range sel.Filter.Classes {
		begin, prefix := strings.CutSuffix(c, "*")
		fits := func(class string) bool { return class == c || prefix && strings.HasPrefix(class, begin) }
		if len(classes) > 0 && !slices.ContainsFunc(classes, fits) {
			t.Screen.Warn("--class %s fits none of these letters of %s: redrive summary %s shows the classes there are", c, topic, topic)
		}
	}
}

// ReadFailed is an error of reading a dead-letter topic.
func ReadFailed(topic string, errs ...error) error {
	return cli.OnTopic("READ", topic, errors.Join(errs...))
}

// Chosen yields the letters of a selection from the cursor on: the open letters, or all. With
// --state the states decide.
func Chosen(ctx context.Context, s *cli.Session, f Sibling, sel *selection.Selection, from dlq.Cursor, all bool) (iter.Seq2[*dlq.Letter, error], error) {
	if all && len(sel.Filter.States) == 0 {
		return dlq.Read(ctx, f.Topic, sel.Filter, from, s.Kafka...), nil
	}
	ledger, err := ReadLedger(ctx, s, f, ToInspect)
	if err != nil {
		return nil, err
	}
	scope := dlq.OpenOnly
	if len(sel.Filter.States) > 0 {
		scope = dlq.WithResolved
	}
	return ledger.Letters(ctx, sel.Filter, from, scope), nil
}

// Nothing is the message where no letter is chosen.
func Nothing(topic string, all bool) string {
	if all {
		return fmt.Sprintf("no letter of %s fits", topic)
	}
	return fmt.Sprintf("no open letter of %s fits: redrive summary %s shows the open ones, --all includes the others", topic, topic)
}
