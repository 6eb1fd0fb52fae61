package run

// The verb that reports the effect of a run beforehand, and a plan as text.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/subject"
)

// planning is the flags of plan.
type planning struct {
	*runFlags
	save string // the file that gets the plan
}

// NewPlan makes the verb plan.
func NewPlan(t *cli.Tool) *cobra.Command {
	var p planning
	cmd := &cobra.Command{
		Use:   "plan TOPIC...",
		Short: "Report what a run with these options would do",
		Long: `Plan reports which open dead letters a run would select, where it would send them, which groups would see them there
and how long it would take. Plan sends nothing. It only records in the ledger new outcomes of letters that earlier runs
redrove. Run takes the same options and plans again.

With --save it also writes the plan to a file. run --plan redrives the letters of that file, and no others, from any
machine. The file has the changes to the records, too, and a check against edits.

Several topics are one plan after the other: with -o json an array, with -o jsonl a line each. A run has one topic.`,
		Example: `  redrive plan orders.dlq --class http.503
  redrive plan orders.dlq --since 2h --rate 200
  redrive plan orders.dlq --rate 10%
  redrive plan orders.dlq payments.dlq --since 2h
  redrive plan orders.dlq --class decode --patch '{"currency":"EUR"}'
  redrive plan orders.dlq --class http.503 --save http503.plan`,
		RunE: func(cmd *cobra.Command, args []string) error {
			asked, err := p.compile(t)
			if p.save != "" && len(args) > 1 {
				err = errors.Join(err, errors.New("--save is for one topic: a run has one"))
			}
			ctx := cmd.Context()
			return t.With(ctx, func(s *cli.Session) error {
				return subject.EachTopic(ctx, s, args, func(topic string, show func(...output.Field) error) error {
					return p.plan(ctx, s, topic, asked, show)
				})
			}, err)
		},
	}
	p.runFlags = addRunFlags(t, cmd)
	cmd.Flags().StringVar(&p.save, "save", "", "write the plan to a new `file`, which run --plan takes")
	cli.CompleteFiles(cmd, "save")
	return cmd
}

// plan makes the plan of a topic, shows it, and writes it to the file of --save.
func (p *planning) plan(ctx context.Context, s *cli.Session, topic string, asked asked, show func(...output.Field) error) error {
	r, plan, err := planRun(ctx, s, topic, p.runFlags, asked)
	if err != nil {
		return err
	}
	pace, err := p.pace.paceOf(ctx, s.Tool, r, plan, asked.pace)
	if err != nil {
		return err
	}
	if p.save != "" {
		if err := savePlan(plan, p.save); err != nil {
			return err
		}
		s.Screen.Print("the plan is in %s: redrive run %s --plan %s%s runs it", p.save, topic, p.save, p.pace.given())
	}
	return showPlan(s.Tool, plan, pace, show)
}

func showPlan(t *cli.Tool, p *redrive.Plan, pace redrive.Pace, show func(...output.Field) error) error {
	field := output.NewField
	var takes any
	if pace.Rate > 0 {
		takes = p.Duration(pace)
	}
	classes, partitions := output.Counts("class", "CLASS", p.ByClass), output.Counts("partition", "PARTITION", p.ByPartition)
	err := show(
		field("topic", "TOPIC", p.Selection.Topic),
		field("letters", "LETTERS", p.Letters),
		field("targets", "TARGET", output.Pair{Table: targetsOf(p), JSON: output.Counts("topic", "TOPIC", p.Targets)}),
		field("seenBy", "SEEN BY", output.Pair{Table: strings.Join(p.SeenBy, ", "), JSON: p.SeenBy}),
		field("watched", "WATCHED", output.Pair{Table: strings.Join(p.Watched, ", "), JSON: p.Watched}),
		field("sendingMs", "SENDING TAKES", output.Pair{Table: sendingTakes(p, pace), JSON: takes}),
		field("skipped", "SKIPPED", output.Pair{Table: cli.CountsText(p.Skipped), JSON: output.OrEmpty(p.Skipped)}),
		field("maxAttempts", "MAX ATTEMPTS", output.UnlessZero(p.Selection.MaxAttempts)),
		editText(p.Selection.Edit),
		field("classes", "", classes),
		field("partitions", "", partitions),
		field("groups", "", output.Counts("group", "GROUP", p.ByGroup)),
		field("warnings", "", output.Pair{JSON: p.Warnings}),
	)
	if err != nil {
		return err
	}
	for _, w := range p.Warnings {
		t.Screen.Warn("%s", w)
	}
	return t.Screen.Tables(classes, partitions)
}

// planRun makes the plan that the flags ask for, and the engine that can run it.
func planRun(ctx context.Context, s *cli.Session, topic string, i *runFlags, asked asked) (*redrive.Redriver, *redrive.Plan, error) {
	if _, _, err := subject.Choose(ctx, s, topic, asked.letters); err != nil {
		return nil, nil, err
	}
	r, err := s.Redriver()
	if err != nil {
		return nil, nil, err
	}
	warnOfOutcomes := subject.WriteOutcomes(ctx, s.Tool, r, topic)
	s.Screen.Status("reading %s …", topic)
	p, err := r.Plan(ctx, redrive.Selection{Topic: topic, Filter: asked.letters.Filter, Target: i.target, MaxRedrives: orNone(i.maxRedrives), MaxAttempts: i.maxAttempts, Edit: asked.edit})
	subject.WarnOfWhere(s.Tool, asked.letters)
	if err == nil {
		subject.WarnOfClasses(s.Tool, topic, asked.letters, maps.Keys(p.ByClass))
		warnOfOutcomes()
	}
	return r, p, err
}

// savePlan writes a plan to a new file. Only its owner can read it, since edits may be personal
// data.
func savePlan(p *redrive.Plan, name string) error {
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("the plan was not saved: %s already exists and is never overwritten: choose another name", name)
	}
	if err != nil {
		return fmt.Errorf("the plan was not saved: %w", err)
	}
	_, err = file.Write(append(text, '\n'))
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("the plan was not saved: %w", errors.Join(err, os.Remove(name)))
	}
	return nil
}

// readPlan reads a plan of a topic that plan --save stored.
func readPlan(topic, name string) (*redrive.Plan, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("--plan: %w", err)
	}
	var p redrive.Plan
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, fmt.Errorf("--plan: %s can't be run: %s; redrive plan %s --save makes another", name, strings.TrimPrefix(err.Error(), "redrive: "), topic)
	}
	if p.Selection.Topic != topic {
		return nil, fmt.Errorf("--plan: %s is a plan of %s, not of %s", name, p.Selection.Topic, topic)
	}
	p.Warnings = nil // as of then; Redriver.Run has those of now
	return &p, nil
}

// onlyPlan returns an error if the command line has flags that a stored plan decides.
func onlyPlan(cmd *cobra.Command) error {
	var others []string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if slices.Contains([]string{cli.SectionLetters, cli.SectionTarget, cli.SectionEdit}, cli.SectionOf(f)) {
			others = append(others, "--"+f.Name)
		}
	})
	if len(others) > 0 {
		return fmt.Errorf("--plan has its own letters, target and changes: omit %s", strings.Join(others, ", "))
	}
	return nil
}

// storedPlan makes the engine that can run a stored plan. Like planRun it first records outcomes of
// earlier runs.
func storedPlan(ctx context.Context, s *cli.Session, p *redrive.Plan) (*redrive.Redriver, error) {
	if _, err := subject.FindTopic(ctx, s, p.Selection.Topic); err != nil {
		return nil, err
	}
	r, err := s.Redriver()
	if err != nil {
		return nil, err
	}
	subject.WriteOutcomes(ctx, s.Tool, r, p.Selection.Topic)()
	return r, nil
}

// editText is a field for what a run changes: which headers, and how the value.
func editText(e redrive.Edit) output.Field {
	var set []string
	for _, h := range e.Set {
		set = append(set, h.Key)
	}
	var words []string
	var value any
	switch {
	case e.Patch != nil:
		value, words = "patch", []string{"value (patch)"}
	case e.Value != nil:
		value, words = "new", []string{"value (new)"}
	}
	if keys := slices.Compact(slices.Sorted(slices.Values(slices.Concat(set, e.Unset)))); len(keys) > 0 {
		words = append(words, "headers "+strings.Join(keys, ", "))
	}
	title := "EDITED"
	if e.IsZero() {
		title = ""
	}
	fields := struct {
		Value any      `json:"value"`
		Set   []string `json:"setHeaders"`
		Unset []string `json:"unsetHeaders"`
	}{value, append([]string{}, set...), append([]string{}, e.Unset...)}
	return output.NewField("edited", title, output.Pair{Table: strings.Join(words, ", "), JSON: fields})
}

// sendingTakes is how long the sending would take, and at which rate.
func sendingTakes(p *redrive.Plan, pace redrive.Pace) string {
	if pace.Rate < 0 {
		return "as long as it takes, " + rateText(pace)
	}
	return output.Duration(p.Duration(pace).Round(time.Second)) + " " + rateText(pace)
}

// rateText is the rate of a run in words.
func rateText(pace redrive.Pace) string {
	if pace.Rate < 0 {
		return "at no fixed rate"
	}
	if pace.Rate == 1 {
		return "at 1 record a second"
	}
	return fmt.Sprintf("at %g records a second", pace.Rate)
}

// targetsOf is the topics that a plan's records go to.
func targetsOf(p *redrive.Plan) string {
	return strings.Join(slices.Sorted(maps.Keys(p.Targets)), ", ")
}
