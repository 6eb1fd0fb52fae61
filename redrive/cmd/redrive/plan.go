package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/edit"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/selection"
)

// runFlags is what plan and run are told alike: which letters, where to, how changed, how fast.
type runFlags struct {
	*operator
	letters     *selection.Flags
	edit        *edit.Flags
	pace        *paceFlags
	target      redrive.Target
	maxRedrives int
}

func addRunFlags(t *tool, cmd *cobra.Command) *runFlags {
	i := &runFlags{letters: addSelection(cmd)}
	section(cmd, sectionTarget, func(set *pflag.FlagSet) {
		set.StringVar(&i.target.Topic, "target", "", "`topic` to redrive to: a retry topic of the source, which only the failing group handles; or the source or another topic, for all groups that read it (default the failing group's first retry topic)")
		set.BoolVar(&i.target.Wait, "wait", false, "wait for a group that has no members, instead of refusing")
		set.BoolVar(&i.target.Force, "force", false, "redrive to a compacted source, or although the retry topics seem to follow another naming")
		set.BoolVar(&i.target.KeepTimestamp, "keep-timestamp", false, "keep the records' original timestamps; for a --target that is not a retry topic")
		set.IntVar(&i.maxRedrives, "max-redrives", 3, "`times` that a record may be redriven, over all runs; 0 for any number")
	})
	section(cmd, sectionEdit, func(set *pflag.FlagSet) { i.edit = edit.AddFlags(set) })
	section(cmd, sectionPace, func(set *pflag.FlagSet) { i.pace = addPace(set) })
	section(cmd, sectionLedger, func(set *pflag.FlagSet) { i.operator = addOperator(t, set) })
	return i
}

// plan plans what was asked for.
func planRun(ctx context.Context, s *session, topic string, i *runFlags, sel *selection.Selection, e redrive.Edit) (*redrive.Plan, error) {
	if _, err := choose(ctx, s, topic, sel); err != nil {
		return nil, err
	}
	r, err := s.redriver(i.operator)
	if err != nil {
		return nil, err
	}
	unsettled := writeOutcomes(ctx, s.tool, r, topic)
	s.screen.Status("reading %s …", topic)
	p, err := r.Plan(ctx, redrive.Selection{Topic: topic, Filter: sel.Filter, Target: i.target, MaxRedrives: orNone(i.maxRedrives), Edit: e})
	warnOfDoubts(s.tool, sel)
	if err == nil {
		unsettled()
	}
	return p, err
}

// writeOutcomes writes down what became of letters since their runs ended: of some it will never be known, and they are open again. What keeps it
// from that keeps nobody from anything else, and is told by who goes on.
func writeOutcomes(ctx context.Context, t *tool, r *redrive.Redriver, topic string) (tell func()) {
	t.screen.Status("checking the outcomes of earlier runs …")
	_, err := r.WriteOutcomes(ctx, topic)
	return func() {
		if err != nil {
			t.screen.Warn("the outcomes of earlier runs could not be recorded: %v", err)
		}
	}
}

// compile is what the flags say, with all that is wrong with them.
func (i *runFlags) compile(t *tool) (*selection.Selection, redrive.Edit, redrive.Pace, error) {
	sel, err1 := i.letters.Compile(t.now())
	e, err2 := i.edit.Compile(t.stdin)
	pace, err3 := i.pace.pace()
	var err4 error
	if i.maxRedrives < 0 {
		err4 = errors.New("--max-redrives is negative")
	}
	return sel, e, pace, errors.Join(err1, err2, err3, err4, i.check())
}

func newPlan(t *tool) *cobra.Command {
	var i *runFlags
	cmd := &cobra.Command{
		Use:   "plan TOPIC",
		Short: "Report what a run with these options would do",
		Long: `Plan reports which open dead letters fit, where a run would send them, which groups would see them there and how long
it would take. It sends nothing; it only records what became since of letters that earlier runs redrove. Run takes
the same options and plans again.`,
		Example: `  redrive plan orders.dlq --class http.503
  redrive plan orders.dlq --since 2h --rate 200
  redrive plan orders.dlq --class decode --patch '{"currency":"EUR"}'`,
		Args:              oneTopic("TOPIC"),
		ValidArgsFunction: completeTopic(t),
		RunE: func(cmd *cobra.Command, args []string) error {
			sel, e, pace, err := i.compile(t)
			return t.with(cmd.Context(), func(s *session) error {
				p, err := planRun(cmd.Context(), s, args[0], i, sel, e)
				if err != nil {
					return err
				}
				return showPlan(t, p, pace)
			}, err)
		},
	}
	i = addRunFlags(t, cmd)
	return cmd
}

func showPlan(t *tool, p *redrive.Plan, pace redrive.Pace) error {
	field := output.NewField
	classes, partitions := counts("class", "CLASS", p.ByClass), counts("partition", "PARTITION", p.ByPartition)
	err := t.screen.Object(
		field("topic", "TOPIC", p.Selection.Topic),
		field("letters", "LETTERS", p.Letters),
		field("targets", "TARGET", output.Pair{Table: targetsOf(p), JSON: counts("topic", "TOPIC", p.Targets)}),
		field("seenBy", "SEEN BY", output.Pair{Table: strings.Join(p.SeenBy, ", "), JSON: p.SeenBy}),
		field("watched", "WATCHED", output.Pair{Table: strings.Join(p.Watched, ", "), JSON: p.Watched}),
		field("sendingMs", "SENDING TAKES", output.Pair{Table: sendingTakes(p, pace), JSON: sendingMs(p, pace)}),
		field("skipped", "LEFT OUT", output.Pair{Table: said(p.Skipped), JSON: some(p.Skipped)}),
		editText(p.Selection.Edit),
		field("classes", "", classes),
		field("partitions", "", partitions),
		field("groups", "", counts("group", "GROUP", p.ByGroup)),
		field("warnings", "", output.Pair{JSON: p.Warnings}),
	)
	if err != nil {
		return err
	}
	for _, w := range p.Warnings {
		t.screen.Warn("%s", w)
	}
	return t.screen.Tables(classes, partitions)
}

// sendingTakes is how long the sending would take, and why.
func sendingTakes(p *redrive.Plan, pace redrive.Pace) string {
	if pace.Rate < 0 {
		return "as long as it takes, at no fixed rate"
	}
	return fmt.Sprintf("%s at %g/s", output.Duration(p.Duration(pace).Round(time.Second)), pace.Rate)
}

// sendingMs is how long the sending would take; without a limit nobody knows.
func sendingMs(p *redrive.Plan, pace redrive.Pace) any {
	if pace.Rate < 0 {
		return nil
	}
	return p.Duration(pace)
}

// some are counts by name as JSON has them: of none an object without any, since it is known that there are none.
func some(of map[string]int64) map[string]int64 {
	if of == nil {
		return map[string]int64{}
	}
	return of
}

// counts are rows, the most first.
func counts[K cmp.Ordered](key, title string, of map[K]int64) output.Rows {
	rows := output.Rows{}
	names := slices.SortedFunc(maps.Keys(of), func(a, b K) int {
		return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b))
	})
	for _, name := range names {
		rows = append(rows, []output.Field{output.NewField("letters", "LETTERS", of[name]).Right(), output.NewField(key, title, name)})
	}
	return rows
}

// said are counts in words.
func said(of map[string]int64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, letters(of[name])+": "+name)
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, "; ")
}
