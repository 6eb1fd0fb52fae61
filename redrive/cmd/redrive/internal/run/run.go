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
)

// running is the flags of run.
type running struct {
	*runFlags
	plan   string // the file of a stored plan
	yes    bool
	noWait *bool
}

// NewRun makes the verb run.
func NewRun(t *cli.Tool) *cobra.Command {
	var r running
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
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd, t, args[0]) },
	}
	r.runFlags = addRunFlags(t, cmd)
	r.noWait = addNoWait(cmd)
	cmd.Flags().StringVar(&r.plan, "plan", "", "redrive the letters of this `file`, which plan --save wrote, as it says")
	cli.CompleteFiles(cmd, "plan")
	cmd.Flags().BoolVar(&r.yes, "yes", false, "do not ask for confirmation, also if no flag chooses letters or other groups process the records again")
	return cmd
}

// run plans a run of a topic, or takes the stored plan, and runs it once the user agrees.
func (r *running) run(cmd *cobra.Command, t *cli.Tool, topic string) error {
	ctx := cmd.Context()
	asked, wrong := r.compile(t)
	var stored *redrive.Plan
	var unread error
	if r.plan != "" {
		stored, unread = readPlan(topic, r.plan)
		unread = errors.Join(unread, onlyPlan(cmd))
	}
	return t.With(ctx, func(s *cli.Session) error {
		var engine *redrive.Redriver
		p, err := stored, error(nil)
		if stored != nil {
			engine, err = storedPlan(ctx, s, stored)
		} else {
			engine, p, err = planRun(ctx, s, topic, r.runFlags, asked)
		}
		if err != nil {
			return err
		}
		for _, w := range p.Warnings {
			t.Screen.Warn("%s", w)
		}
		if question := runQuestion(s, p, chooses(cmd) || stored != nil); question != "" && !r.yes {
			if err := cli.Confirm(ctx, t, question, p.Letters); err != nil {
				return err
			}
		}
		return r.begin(ctx, t, engine, p, asked.pace)
	}, wrong, unread)
}

// begin runs a plan, and follows the run to its end.
func (r *running) begin(ctx context.Context, t *cli.Tool, engine *redrive.Redriver, p *redrive.Plan, pace redrive.Pace) error {
	pace, err := r.pace.paceOf(ctx, t, engine, p, pace)
	if err != nil {
		return err
	}
	// not before the first event: a refused run has no name
	on := follow(t, func(redrive.Event) { printRun(t, p, pace) })
	t.Screen.Status("beginning …")
	cli.OutlivePipes()
	o, err := engine.Run(ctx, p, redrive.RunOptions{By: r.By, Why: r.Why, Pace: pace, On: on})
	return finish(ctx, t, engine, o, err, *r.noWait)
}

// printRun prints what a run is about to do.
func printRun(t *cli.Tool, p *redrive.Plan, pace redrive.Pace) {
	topic := p.Selection.Topic
	t.Screen.Print("run %s/%s: %s to %s; sending takes %s", topic, p.ID, cli.Letters(p.Letters), targetsOf(p), sendingTakes(p, pace))
	if len(p.Watched) > 0 {
		t.Screen.Print("watching for failures in %s and %s", strings.Join(p.Watched, ", "), topic)
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
