package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sidingkafka/siding/redrive"
)

func newRun(t *tool) *cobra.Command {
	var i *intent
	cmd := &cobra.Command{
		Use:   "run TOPIC",
		Short: "Bring dead letters back, and stop when they fail again",
		Long: `Run brings open dead letters back: a canary first, whose outcome it waits for, then more and more up to the rate.
It aborts by itself, with exit code 3, when a record that it brought back fails again with a class of the run, or new
traffic does, or the dead-letter topic fills faster than it is drained. Ctrl-C stops it cleanly; resume goes on, from
any machine. Without filters it brings back all that is open.

The run and what became of each letter are kept in the ledger beside the dead-letter topic, with --by and --why.`,
		Example: `  redrive run orders.dlq --class http.503 --why OPS-4711
  redrive run orders.dlq --rate 500 --canary 10
  redrive run orders.dlq --offset 3:41 --value-file fixed.json`,
		Args:              oneTopic("TOPIC"),
		ValidArgsFunction: completeTopic(t),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, topic := cmd.Context(), args[0]
			sel, e, pace, err := i.compile(t)
			s, err := t.connect(ctx, err)
			if err != nil {
				return err
			}
			defer s.close()
			p, err := t.plan(ctx, s, topic, i, sel, e)
			if err != nil {
				return err
			}
			r, err := s.redriver(i.operator)
			if err != nil {
				return err
			}
			for _, w := range p.Warnings {
				t.screen.Warn("%s", w)
			}
			t.screen.Say("run %s/%s: %s to %s; sending takes %s", topic, p.ID, letters(p.Letters), targetsOf(p), sendingTakes(p, pace))
			o, err := r.Run(ctx, p, pace, t.follow())
			return t.ended(ctx, r, o, err)
		},
	}
	i = t.addIntent(cmd)
	return cmd
}

func newResume(t *tool) *cobra.Command {
	var o *operator
	cmd := &cobra.Command{
		Use:   "resume RUN",
		Short: "Go on with a run that was stopped, or whose process died",
		Long: `Resume goes on with an unfinished run where the ledger says that it is: nothing is sent twice, and nothing is left
out. Letters, target, edits and pace are those that it began with. A process that still has the run loses it.`,
		Example:           "  redrive resume orders.dlq/20260102-150405-a1b2c3",
		Args:              oneTopic("RUN"),
		ValidArgsFunction: completeRun(t, unfinished),
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.onRun(cmd.Context(), args[0], o, func(ctx context.Context, r *redrive.Redriver, topic, id string) error {
				begun, on := false, t.follow()
				out, err := r.Resume(ctx, topic, id, func(e redrive.Event) {
					if !begun {
						begun = true
						t.screen.Say("run %s/%s: %d of %s were sent", topic, id, e.Counts.Sent, letters(e.Counts.Selected))
					}
					on(e)
				})
				return t.ended(ctx, r, out, err)
			})
		},
	}
	section(cmd, sectionLedger, func(set *pflag.FlagSet) { o = t.addBy(set) })
	return cmd
}

func newAbort(t *tool) *cobra.Command {
	var o *operator
	cmd := &cobra.Command{
		Use:   "abort RUN",
		Short: "End a run for good, wherever its process is",
		Long: `Abort ends an unfinished run: what its process has not committed by then never becomes visible. What was sent stays
sent, and status tells what becomes of it; all other letters stay open.`,
		Example: `  redrive abort orders.dlq/20260102-150405-a1b2c3
  redrive abort orders.dlq/20260102-150405-a1b2c3 --why rolled-back`,
		Args:              oneTopic("RUN"),
		ValidArgsFunction: completeRun(t, unfinished),
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.onRun(cmd.Context(), args[0], o, func(ctx context.Context, r *redrive.Redriver, topic, id string) error {
				runs, _ := r.Runs(ctx, topic) // what is wrong there, Abort finds too
				over := slices.ContainsFunc(runs, func(o redrive.Outcome) bool { return o.ID == id && o.State.Finished() })
				if err := r.Abort(ctx, topic, id); err != nil {
					return err
				}
				out, err := r.Status(ctx, topic, id)
				switch {
				case over:
					t.screen.Say("run %s/%s was over already, and nothing was changed", topic, id)
				case err != nil:
					t.screen.Say("run %s/%s is aborted; what became of its records is not known yet", topic, id)
				}
				if err != nil {
					return err
				}
				return t.showOutcome(out)
			})
		},
	}
	section(cmd, sectionLedger, func(set *pflag.FlagSet) { o = t.addOperator(set) })
	return cmd
}

// onRun does something with a run that was named.
func (t *tool) onRun(ctx context.Context, name string, o *operator, do func(ctx context.Context, r *redrive.Redriver, topic, id string) error) error {
	topic, id, err := parseRun(name)
	s, err := t.connect(ctx, err, o.check())
	if err != nil {
		return err
	}
	defer s.close()
	if _, err := s.deadLetters(ctx, topic); err != nil {
		return err
	}
	r, err := s.redriver(o)
	if err != nil {
		return err
	}
	return do(ctx, r, topic, id)
}

// ended shows what a run came to, and makes its error the command's.
func (t *tool) ended(ctx context.Context, r *redrive.Redriver, o redrive.Outcome, err error) error {
	t.screen.Status("")
	if o.ID == "" {
		return err // it did not begin
	}
	if errors.Is(err, redrive.ErrTaken) {
		// What this process knows of it is what it was when the other one came.
		if now, failed := r.Status(ctx, o.Topic, o.ID); failed == nil {
			o = now
		}
	}
	if err := t.showOutcome(o); err != nil {
		return err
	}
	if len(o.Counts.Skipped) > 0 {
		t.screen.Warn("not sent: %s", said(o.Counts.Skipped))
	}
	if again, ok := errors.AsType[*redrive.ReappearedError](err); ok {
		t.showFailures(again, o)
	}
	if err != nil && !o.State.Finished() && !errors.Is(err, redrive.ErrTaken) {
		t.sayUnfinished(o)
	}
	return err
}

// showFailures shows what made a run abort itself.
func (t *tool) showFailures(again *redrive.ReappearedError, o redrive.Outcome) {
	if left := o.Counts.Selected - o.Counts.Sent; left > 0 {
		t.screen.Say("not sent, and open: %s", letters(left))
	}
	t.screen.Say("what failed:")
	for _, f := range again.Seen {
		what := "new traffic"
		if f.Letter != "" {
			what = "letter " + f.Letter
		}
		t.screen.Say("  %s, at %s: %s: %s", what, f.Record, f.Class, f.Message)
		if place, ok := strings.CutPrefix(f.Record, o.Topic+"/"); ok {
			t.screen.Say("    redrive show %s %s", o.Topic, strings.Replace(place, "/", ":", 1))
		}
	}
}

// sayUnfinished says how to go on with a run, or end it.
func (t *tool) sayUnfinished(o redrive.Outcome) {
	run := o.Topic + "/" + o.ID
	t.screen.Say("the run is unfinished: redrive resume %s goes on with it, redrive abort %s ends it", run, run)
}
