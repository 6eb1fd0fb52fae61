package run

// The verb that redrives dead letters, and stops when they fail again.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/selection"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/subject"
)

func NewRun(t *cli.Tool) *cobra.Command {
	var i *runFlags
	var noWait *bool
	var yes bool
	var file string
	cmd := &cobra.Command{
		Use:   "run TOPIC",
		Short: "Redrive dead letters, and stop when they fail again",
		Long: `Run redrives open dead letters: first a canary, whose outcome it waits for, then more and more up to the rate. Without
a flag that chooses letters it redrives all open ones; you must then type their number, or pass --yes. So you must if
--target is the source, and groups read it that did not fail.

It aborts by itself, with exit code 3, if
  - the canary fails;
  - a letter of the run, or new traffic, fails with a class of the run;
  - more than a tenth of the last 50 letters fail, with any class;
  - the dead-letter topic fills faster than the run drains it, or was recreated.

The exit code is 3 too if the run ends with fewer failures. It is 6 if letters that it could not send are open, or
if it sent none. It is 5 if no letter failed and some have no outcome yet.
Ctrl-C stops the run cleanly; resume continues it, from any machine.

The ledger beside the dead-letter topic records the run, with --by and --why, and what became of each letter.`,
		Example: `  redrive run orders.dlq --class http.503 --why OPS-4711
  redrive run orders.dlq --since 2h --rate 500 --canary 10
  redrive run orders.dlq --rate 10% --yes
  redrive run orders.dlq --offset 3:41 --value-file fixed.json
  redrive run orders.dlq --plan http503.plan --why OPS-4711`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, topic := cmd.Context(), args[0]
			sel, e, pace, err := i.compile(t)
			var wrong error
			var stored *redrive.Plan
			if file != "" {
				var unread error
				stored, unread = readPlan(topic, file)
				wrong = errors.Join(wrong, unread, onlyPlan(cmd))
			}
			return t.With(ctx, func(s *cli.Session) error {
				prepare := func() (*redrive.Redriver, *redrive.Plan, error) { return planRun(ctx, s, topic, i, sel, e) }
				if stored != nil {
					prepare = func() (*redrive.Redriver, *redrive.Plan, error) { return storedPlan(ctx, s, stored) }
				}
				r, p, err := prepare()
				if err != nil {
					return err
				}
				for _, w := range p.Warnings {
					t.Screen.Warn("%s", w)
				}
				if what := runQuestion(s, p, chooses(cmd) || stored != nil); what != "" && !yes {
					if err := cli.Confirm(ctx, t, what, p.Letters); err != nil {
						return err
					}
				}
				pace, err := i.pace.paceOf(ctx, t, r, p, pace)
				if err != nil {
					return err
				}
				// not before the first event: a refused run has no name
				on := follow(t, func(redrive.Event) { sayRun(t, p, pace) })
				t.Screen.Status("beginning …")
				cli.OutlivePipes()
				o, err := r.Run(ctx, p, redrive.RunOptions{By: i.By, Why: i.Why, Pace: pace, On: on})
				return finish(ctx, t, r, o, err, *noWait)
			}, err, wrong)
		},
	}
	i = addRunFlags(t, cmd)
	noWait = addNoWait(cmd)
	cmd.Flags().StringVar(&file, "plan", "", "redrive the letters of this `file`, which plan --save wrote, as it says")
	cli.OfferFiles(cmd, "plan")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation, also if no flag chooses letters or other groups process the records again")
	return cmd
}

// sayRun prints what a run is about to do.
func sayRun(t *cli.Tool, p *redrive.Plan, pace redrive.Pace) {
	topic := p.Selection.Topic
	t.Screen.Say("run %s/%s: %s to %s; sending takes %s", topic, p.ID, cli.Letters(p.Letters), targetsOf(p), sendingTakes(p, pace))
	if len(p.Watched) > 0 {
		t.Screen.Say("watching for failures in %s and %s", strings.Join(p.Watched, ", "), topic)
	}
}

// runQuestion is what must be confirmed before a run; empty if nothing is. Without a flag that
// chooses letters all open ones are redriven, and in a job a filter may have been lost on the way.
// On their source all groups read the records, also those that did not fail.
func runQuestion(s *cli.Session, p *redrive.Plan, chosen bool) string {
	var parts []string
	if !chosen {
		parts = append(parts, fmt.Sprintf("no flag chooses letters: all %s of %s will be redriven, to %s", cli.Letters(p.Letters), p.Selection.Topic, targetsOf(p)))
	}
	name, _ := s.Naming.Parse(p.Selection.Topic)
	failed := maps.Clone(p.ByGroup)
	delete(failed, "")
	others := slices.DeleteFunc(slices.Clone(p.SeenBy), func(group string) bool { return failed[group] > 0 })
	// of letters without a group, the only group that reads the source is the one that failed
	if unnamed := len(failed) == 0 && len(others) == 1; p.Selection.Target.Topic == name.Source && len(others) > 0 && !unnamed {
		parts = append(parts, fmt.Sprintf("%s will be processed again on %s by groups that did not fail: %s", cli.Letters(p.Letters), name.Source, strings.Join(others, ", ")))
	}
	return strings.Join(parts, "; ")
}

// planRun makes the plan that the flags ask for, and the engine that can run it.
func planRun(ctx context.Context, s *cli.Session, topic string, i *runFlags, sel *selection.Selection, e redrive.Edit) (*redrive.Redriver, *redrive.Plan, error) {
	if _, _, err := subject.Choose(ctx, s, topic, sel); err != nil {
		return nil, nil, err
	}
	r, err := s.Redriver()
	if err != nil {
		return nil, nil, err
	}
	unresolved := subject.WriteOutcomes(ctx, s.Tool, r, topic)
	s.Screen.Status("reading %s …", topic)
	p, err := r.Plan(ctx, redrive.Selection{Topic: topic, Filter: sel.Filter, Target: i.target, MaxRedrives: orNone(i.maxRedrives), MaxAttempts: i.maxAttempts, Edit: e})
	subject.WarnOfWhere(s.Tool, sel)
	if err == nil {
		subject.WarnOfClasses(s.Tool, topic, sel, maps.Keys(p.ByClass))
		unresolved()
	}
	return r, p, err
}
