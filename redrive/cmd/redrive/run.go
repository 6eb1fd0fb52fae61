package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

func newRun(t *tool) *cobra.Command {
	var i *intent
	cmd := &cobra.Command{
		Use:   "run TOPIC",
		Short: "Bring dead letters back, and stop when they fail again",
		Long: `Run brings open dead letters back: a canary first, whose outcome it waits for, then more and more up to the rate.
It aborts by itself, with exit code 3, when a record that it brought back fails again with a class of the run, or new
traffic does. Ctrl-C stops it cleanly; resume goes on, from any machine.

The run and what became of each letter are kept in the ledger beside the dead-letter topic, with --by and --why.`,
		Example: `  redrive run orders.dlq --class http.503 --why "OPS-4711, gateway is back"
  redrive run orders.dlq --rate 500 --canary 10
  redrive run orders.dlq --partition 3 --offset 3:41 --value-file fixed.json`,
		Args:              oneTopic("TOPIC"),
		ValidArgsFunction: completeTopic(t),
		RunE: func(cmd *cobra.Command, args []string) error {
			sel, e, pace, err := i.compile(t)
			s, err := t.connect(cmd.Context(), err)
			if err != nil {
				return err
			}
			defer s.close()
			p, err := t.plan(cmd.Context(), s, args[0], i, sel, e)
			if err != nil {
				return err
			}
			r, err := s.redriver(i.operator)
			if err != nil {
				return usage(err)
			}
			for _, w := range p.Warnings {
				t.screen.Warn("%s", w)
			}
			t.screen.Say("run %s/%s: %s to %s", args[0], p.ID, letters(p.Letters), targetsOf(p))
			o, err := r.Run(cmd.Context(), p, pace, t.follow())
			return t.ended(cmd.Context(), args[0], p.ID, o, err)
		},
	}
	i = addIntent(cmd)
	return cmd
}

func newResume(t *tool) *cobra.Command {
	var o *operator
	cmd := &cobra.Command{
		Use:   "resume RUN",
		Short: "Go on with a run that was stopped, or whose process died",
		Long: `Resume goes on with an unfinished run where the ledger says that it is: nothing is sent twice, and nothing is left
out. A process that has the run still loses it.`,
		Example: "  redrive resume orders.dlq/20260102-150405-a1b2c3",
		Args:    oneTopic("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.onRun(cmd.Context(), args[0], o, func(ctx context.Context, r *redrive.Redriver, topic, id string) error {
				out, err := r.Resume(ctx, topic, id, t.follow())
				return t.ended(ctx, topic, id, out, err)
			})
		},
	}
	o = addOperator(cmd.Flags())
	return cmd
}

func newAbort(t *tool) *cobra.Command {
	var o *operator
	cmd := &cobra.Command{
		Use:   "abort RUN",
		Short: "End a run for good, wherever its process is",
		Long: `Abort ends an unfinished run: what its process has not committed by then never becomes visible. What was sent stays
sent, and status tells what becomes of it; all other letters stay open.`,
		Example: "  redrive abort orders.dlq/20260102-150405-a1b2c3",
		Args:    oneTopic("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.onRun(cmd.Context(), args[0], o, func(ctx context.Context, r *redrive.Redriver, topic, id string) error {
				if err := r.Abort(ctx, topic, id); err != nil {
					return engineFailed(topic, err)
				}
				out, err := r.Status(ctx, topic, id)
				if err != nil {
					return engineFailed(topic, err)
				}
				return t.showOutcome(out)
			})
		},
	}
	o = addOperator(cmd.Flags())
	return cmd
}

func newStatus(t *tool) *cobra.Command {
	return &cobra.Command{
		Use:   "status RUN",
		Short: "Say how far a run is, and what became of its records",
		Long: `Status says how far a run is, whoever has it, and what became of the records that it brought back. It looks itself:
records of a run that is over may have an outcome since.`,
		Example: "  redrive status orders.dlq/20260102-150405-a1b2c3",
		Args:    oneTopic("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.onRun(cmd.Context(), args[0], &operator{}, func(ctx context.Context, r *redrive.Redriver, topic, id string) error {
				out, err := r.Status(ctx, topic, id)
				if err != nil {
					return engineFailed(topic, err)
				}
				return t.showOutcome(out)
			})
		},
	}
}

// onRun does something with a run that was named.
func (t *tool) onRun(ctx context.Context, name string, o *operator, do func(ctx context.Context, r *redrive.Redriver, topic, id string) error) error {
	topic, id, err := parseRun(name)
	s, err := t.connect(ctx, err)
	if err != nil {
		return err
	}
	defer s.close()
	if _, err := s.deadLetters(ctx, topic); err != nil {
		return err
	}
	r, err := s.redriver(o)
	if err != nil {
		return usage(err)
	}
	return do(ctx, r, topic, id)
}

func newRuns(t *tool) *cobra.Command {
	return &cobra.Command{
		Use:               "runs TOPIC",
		Short:             "List the runs of a dead-letter topic",
		Long:              `Runs lists the runs of a dead-letter topic, oldest first, with what they have written down; status looks anew.`,
		Example:           "  redrive runs orders.dlq",
		Args:              oneTopic("TOPIC"),
		ValidArgsFunction: completeTopic(t),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := t.connect(cmd.Context())
			if err != nil {
				return err
			}
			defer s.close()
			if _, err := s.deadLetters(cmd.Context(), args[0]); err != nil {
				return err
			}
			r, err := s.redriver(&operator{})
			if err != nil {
				return usage(err)
			}
			runs, err := r.Runs(cmd.Context(), args[0])
			if err != nil {
				return engineFailed(args[0], err)
			}
			list := t.screen.List(runColumns...)
			for _, o := range runs {
				if err := list.Row(runCells(o)...); err != nil {
					return err
				}
			}
			if len(runs) == 0 {
				t.screen.Say("%s had no run", args[0])
			}
			return list.Close()
		},
	}
}

// follow shows how a run goes on: a status line, and what there is to tell.
func (t *tool) follow() func(redrive.Event) {
	said := redrive.State("")
	waiting := ""
	return func(e redrive.Event) {
		if e.Message != "" {
			t.screen.Say("%s", e.Message)
		}
		switch {
		case e.State == redrive.Waiting && e.Waiting != waiting:
			t.screen.Say("waiting: %s", e.Waiting)
		case e.State != said && e.State != redrive.Waiting && !e.State.Finished():
			t.screen.Say("%s", stateWords[e.State])
		}
		said, waiting = e.State, e.Waiting
		c := e.Counts
		t.screen.Status("%s %s  %d succeeded, %d failed again, %d pending%s", e.State, output.Bar(c.Sent, c.Selected), c.Succeeded, c.Failed+c.Retrying, c.Pending, rate(e.Rate))
	}
}

func rate(perSecond float64) string {
	if perSecond < 0 {
		return ""
	}
	return fmt.Sprintf("  %.0f/s", perSecond)
}

var stateWords = map[redrive.State]string{
	redrive.Canary:   "canary: the first records are sent, and their outcome is awaited",
	redrive.Sending:  "sending",
	redrive.Watching: "all is sent; failures are looked for until the window is over",
}

// ended shows what a run came to, and makes its error the command's.
func (t *tool) ended(ctx context.Context, topic, id string, o redrive.Outcome, err error) error {
	t.screen.Status("")
	if o.ID != "" {
		if err := t.showOutcome(o); err != nil {
			return err
		}
	}
	reappeared, _ := errors.AsType[*redrive.ReappearedError](err)
	switch {
	case err == nil:
		return nil
	case reappeared != nil:
		for _, f := range reappeared.Seen {
			t.screen.Say("  %s: %s: %s", f.Record, f.Class, f.Message)
		}
	case interrupted(ctx):
		t.screen.Say("the run is unfinished: redrive resume %s/%s goes on with it, redrive abort ends it", topic, id)
	}
	return engineFailed(topic, err)
}
