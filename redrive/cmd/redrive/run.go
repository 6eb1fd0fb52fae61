package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

func newRun(t *tool) *cobra.Command {
	var i *runFlags
	var noWait bool
	cmd := &cobra.Command{
		Use:   "run TOPIC",
		Short: "Redrive dead letters, and stop when they fail again",
		Long: `Run redrives open dead letters: first a canary, whose outcome it waits for, then more and more up to the rate.
It aborts by itself, with exit code 3, in four cases: a letter of the run, or new traffic, fails with a class of the
run; or more than a tenth of the last 50 letters fail with any class; or the dead-letter topic fills faster than the
run drains it. A run that ends with fewer failures has exit code 3 as well. It is 5 if no letter failed and some have
no outcome yet. Ctrl-C stops the run cleanly; resume continues it, from any machine. Without filters run redrives all
open letters.

The ledger beside the dead-letter topic records the run, with --by and --why, and what became of each letter.`,
		Example: `  redrive run orders.dlq --class http.503 --why OPS-4711
  redrive run orders.dlq --rate 500 --canary 10
  redrive run orders.dlq --offset 3:41 --value-file fixed.json`,
		Args:              oneTopic("TOPIC"),
		ValidArgsFunction: completeTopic(t),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, topic := cmd.Context(), args[0]
			sel, e, pace, err := i.compile(t)
			return t.with(ctx, func(s *session) error {
				p, err := planRun(ctx, s, topic, i, sel, e)
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
				on := follow(t, func(redrive.Event) { // not before: of a run that is refused there is no such name
					t.screen.Say("run %s/%s: %s to %s; sending takes %s", topic, p.ID, letters(p.Letters), targetsOf(p), sendingTakes(p, pace))
					if len(p.Watched) > 0 {
						t.screen.Say("watching for failures in %s and %s", strings.Join(p.Watched, ", "), topic)
					}
				})
				t.screen.Status("beginning …")
				o, err := r.Run(ctx, p, pace, on)
				return finish(ctx, t, r, o, err, noWait)
			}, err)
		},
	}
	i = addRunFlags(t, cmd)
	addNoWait(cmd, &noWait)
	return cmd
}

func newResume(t *tool) *cobra.Command {
	var o *operator
	var yes, noWait bool
	cmd := &cobra.Command{
		Use:   "resume RUN",
		Short: "Continue a run that was stopped, or whose process died",
		Long: `Resume continues an unfinished run where it stopped, by the ledger: it sends nothing twice and omits nothing. Letters,
target, edits and pace are those that the run began with.

A process that still owns the run loses it. So resume names that process and asks first, unless the process recorded
that it stopped, or wrote no heartbeat for 20 seconds and for the 7 seconds that resume then listens. Resume also asks
if the ledger can't be read in time.`,
		Example: `  redrive resume orders.dlq/20260102-150405-a1b2c3
  redrive resume orders.dlq/20260102-150405-a1b2c3 --yes`,
		Args: oneTopic("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onRun(cmd.Context(), t, args[0], o, func(ctx context.Context, r *redrive.Redriver, topic, id string) error {
				on := follow(t, func(e redrive.Event) {
					t.screen.Say("run %s/%s: %d of %s were sent", topic, id, e.Counts.Sent, letters(e.Counts.Selected))
				})
				var conditions []redrive.Condition
				if !yes {
					conditions = append(conditions, redrive.IfSilent())
				}
				for {
					t.screen.Status("checking which process owns %s/%s …", topic, id)
					out, err := r.Resume(ctx, topic, id, on, conditions...)
					held, ok := errors.AsType[*redrive.RefusedError](err)
					if !ok || held.Reason != redrive.RefusedOwned {
						return finish(ctx, t, r, out, err, noWait)
					}
					if err := ask(ctx, t, held.Detail+", and would lose the run", "yes"); err != nil {
						return err
					}
					conditions = []redrive.Condition{redrive.IfClaim(held.Run.Claim)} // from that process, and no other
				}
			})
		},
	}
	section(cmd, sectionLedger, func(set *pflag.FlagSet) { o = addBy(t, set) })
	cmd.Flags().BoolVar(&yes, "yes", false, "take the run from a process that still owns it, without asking")
	addNoWait(cmd, &noWait)
	return cmd
}

// addNoWait gives a verb that runs a run the flag that says what its exit code may leave out.
func addNoWait(cmd *cobra.Command, noWait *bool) {
	section(cmd, sectionPace, func(set *pflag.FlagSet) {
		set.BoolVar(noWait, "no-wait", false, "exit with code 0 instead of 5 if no letter failed again and some have no outcome yet")
	})
}

func newAbort(t *tool) *cobra.Command {
	var o *operator
	cmd := &cobra.Command{
		Use:   "abort RUN",
		Short: "End a run for good, wherever its process is",
		Long: `Abort ends an unfinished run for good: what its process has not committed by then never becomes visible. What the run
has sent stays sent, and status reports what becomes of it; all other letters stay open. Abort does not ask; it prints
which process owned the run. An aborted run can't be resumed.`,
		Example: `  redrive abort orders.dlq/20260102-150405-a1b2c3
  redrive abort orders.dlq/20260102-150405-a1b2c3 --why rolled-back`,
		Args: oneTopic("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onRun(cmd.Context(), t, args[0], o, func(ctx context.Context, r *redrive.Redriver, topic, id string) error {
				before, known := readRun(ctx, r, topic, id)
				over := before.State.Finished()
				if err := r.Abort(ctx, topic, id); err != nil {
					return err
				}
				out, err := r.Status(ctx, topic, id)
				switch {
				case over:
					t.screen.Say("run %s/%s had already ended, and nothing was changed", topic, id)
				case err != nil:
					t.screen.Say("run %s/%s is aborted; the outcomes of its records are not known yet", topic, id)
				}
				if has, goesOn := goesOn(t, before); goesOn && !over {
					t.screen.Say("the run was still active: %s", has)
				} else if !known {
					t.screen.Say("the ledger could not be read in time to see whether a process owned the run: one that did stops")
				}
				if err != nil {
					return err
				}
				if err := showOutcome(t, out); err != nil || over {
					return err
				}
				reportLeft(t, out)
				return nil
			})
		},
	}
	section(cmd, sectionLedger, func(set *pflag.FlagSet) { o = addOperator(t, set) })
	return cmd
}

// onRun does something with a run that was named.
func onRun(ctx context.Context, t *tool, name string, o *operator, do func(ctx context.Context, r *redrive.Redriver, topic, id string) error) error {
	topic, id, err := parseRun(name)
	return t.with(ctx, func(s *session) error {
		if _, err := findTopic(ctx, s, topic); err != nil {
			return err
		}
		r, err := s.redriver(o)
		if err != nil {
			return err
		}
		return do(ctx, r, topic, id)
	}, err, o.check())
}

// readRunTime is how long abort may take to look who has a run: as long as a process that goes on lets nobody wait for its transactions. Of
// one that died they may stay open longer than that.
const readRunTime = 3 * time.Second

// readRun looks how a run stands before it is aborted, and whether that can be known in time; what is wrong there is found by the abort.
func readRun(ctx context.Context, r *redrive.Redriver, topic, id string) (o redrive.Outcome, known bool) {
	ctx, cancel := context.WithTimeout(ctx, readRunTime)
	defer cancel()
	runs, _ := r.Runs(ctx, topic)
	if i := slices.IndexFunc(runs, func(o redrive.Outcome) bool { return o.ID == id }); i >= 0 {
		return runs[i], true
	}
	return redrive.Outcome{}, false
}

// goesOn is who has a run, if it seems that somebody does, in words.
func goesOn(t *tool, o redrive.Outcome) (has string, yes bool) {
	since, gone := silent(o, t.now())
	if o.ID == "" || o.State.Finished() || !o.Stopped.IsZero() || gone {
		return "", false
	}
	return fmt.Sprintf("%s was last heard from %s ago", o.Owner, output.Duration(max(0, since).Round(time.Second))), true
}

// ended shows what a run came to, and makes its error the command's, or what its letters came to.
func finish(ctx context.Context, t *tool, r *redrive.Redriver, o redrive.Outcome, err error, noWait bool) error {
	if o.ID == "" {
		return err // it did not begin
	}
	if errors.Is(err, redrive.ErrTaken) {
		// What this process knows of it is what it was when the other one came.
		if now, failed := r.Status(ctx, o.Topic, o.ID); failed == nil {
			o = now
		}
	}
	if err := showOutcome(t, o); err != nil {
		return err
	}
	if len(o.Counts.Skipped) > 0 {
		t.screen.Warn("not sent: %s", said(o.Counts.Skipped))
	}
	if o.State.Finished() {
		reportLeft(t, o)
	}
	if again, ok := errors.AsType[*redrive.FailedAgainError](err); ok {
		showFailures(t, again, o)
	}
	if err != nil && !o.State.Finished() && !errors.Is(err, redrive.ErrTaken) {
		reportUnfinished(t, o)
	}
	if err == nil {
		err = fellShort(o, noWait)
	}
	return err
}

// fellShort is the error of a run that is done, where not all of its letters are.
func fellShort(o redrive.Outcome, noWait bool) error {
	switch c := o.Counts; {
	case c.Failed+c.Retrying > 0:
		text := fmt.Sprintf("%s/%s is done, and %s failed again", o.Topic, o.ID, letters(c.Failed+c.Retrying))
		if c.Retrying > 0 {
			text += fmt.Sprintf(" (%d in a retry topic)", c.Retrying)
		}
		if c.Failed == 0 { // summary shows dead letters
			return coded(exitFailedAgain, errors.New(text+fmt.Sprintf(": redrive status %s/%s reports their outcomes", o.Topic, o.ID)))
		}
		return coded(exitFailedAgain, errors.New(text+fmt.Sprintf(": redrive summary %s shows the causes", o.Topic)))
	case c.Pending > 0 && !noWait:
		return coded(exitPending, fmt.Errorf("%s/%s is done, without an outcome yet for %s", o.Topic, o.ID, letters(c.Pending)))
	}
	return nil
}

// showFailures shows what made a run abort itself.
func showFailures(t *tool, again *redrive.FailedAgainError, o redrive.Outcome) {
	t.screen.Say("failures:")
	more := o.Counts.Failed + o.Counts.Retrying
	for _, f := range again.Seen {
		what := "new traffic"
		if f.Letter != "" {
			what = "letter " + f.Letter
			more--
		}
		t.screen.Say("  %s, at %s: %s: %s", what, f.Record, f.Class, f.Message)
		if place, ok := strings.CutPrefix(f.Record, o.Topic+"/"); ok {
			t.screen.Say("    redrive show %s %s", o.Topic, strings.Replace(place, "/", ":", 1))
		}
	}
	if more > 0 {
		t.screen.Say("  and %s more failed again", letters(more))
	}
}

// reportLeft says of a run that is over what it leaves behind.
func reportLeft(t *tool, o redrive.Outcome) {
	if open := openOf(o.Counts); open > 0 {
		t.screen.Say("not sent, still open: %s", letters(open))
	}
	if o.Counts.Pending > 0 {
		t.screen.Say("redrive status %s/%s reports the outcomes of the pending letters later", o.Topic, o.ID)
	}
}

// reportUnfinished says how to go on with a run, or end it.
func reportUnfinished(t *tool, o redrive.Outcome) {
	run := o.Topic + "/" + o.ID
	t.screen.Say("the run is unfinished: redrive resume %s continues it, redrive abort %s ends it", run, run)
}
