package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
)

// finish prints a run that ended or stopped. It returns the run's error, or else the error of its
// letters' outcomes.
func finish(ctx context.Context, t *cli.Tool, r *redrive.Redriver, o redrive.Outcome, err error, noWait bool) error {
	if o.ID == "" {
		return err // it did not begin
	}
	if errors.Is(err, redrive.ErrTaken) {
		// This process knows the run only as it was when the other process took it.
		if now, failed := r.Status(ctx, o.Topic, o.ID); failed == nil {
			o = now
		}
	}
	if err == nil {
		err = unfinishedError(o, noWait)
	}
	unshown := showOutcome(t, o)
	if unshown != nil {
		unshown = fmt.Errorf("the outcome could not be printed: %w", unshown)
	}
	if len(o.Counts.Skipped) > 0 {
		t.Screen.Warn("not sent: %s", cli.CountsText(o.Counts.Skipped))
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
	// a broken stdout hides neither that letters failed nor the exit code for that
	return errors.Join(err, unshown)
}

// unfinishedError is the error of a run that is done while letters failed again, were not sent or
// are pending. Some letters that expired or were resolved meanwhile are no fault; all of them are.
func unfinishedError(o redrive.Outcome, noWait bool) error {
	switch c := o.Counts; {
	case c.Failed+c.Retrying > 0:
		text := fmt.Sprintf("%s/%s is done, and %s failed again", o.Topic, o.ID, cli.Letters(c.Failed+c.Retrying))
		if c.Retrying > 0 {
			text += fmt.Sprintf(" (%d in a retry topic)", c.Retrying)
		}
		if c.Failed == 0 { // summary shows dead letters
			return cli.Coded(cli.ExitFailedAgain, errors.New(text+fmt.Sprintf(": redrive status %s/%s reports their outcomes", o.Topic, o.ID)))
		}
		return cli.Coded(cli.ExitFailedAgain, errors.New(text+fmt.Sprintf(": redrive summary %s shows the causes", o.Topic)))
	case c.Sent == 0 && c.Selected > 0:
		return cli.Coded(cli.ExitNotSent, fmt.Errorf("%s/%s is done, and it sent nothing: %s", o.Topic, o.ID, cli.CountsText(c.Skipped)))
	case openOf(c) > 0:
		return cli.Coded(cli.ExitNotSent, fmt.Errorf("%s/%s is done, and could not send %s, still open: redrive status %s/%s shows why",
			o.Topic, o.ID, cli.Letters(openOf(c)), o.Topic, o.ID))
	case c.Pending > 0 && !noWait:
		return cli.Coded(cli.ExitPending, fmt.Errorf("%s/%s is done, without an outcome yet for %s", o.Topic, o.ID, cli.Letters(c.Pending)))
	}
	return nil
}

// showFailures shows what made a run abort itself.
func showFailures(t *cli.Tool, again *redrive.FailedAgainError, o redrive.Outcome) {
	t.Screen.Print("failures:")
	more := o.Counts.Failed + o.Counts.Retrying
	for _, f := range again.Seen {
		of := "new traffic"
		if f.Letter != "" {
			of = "letter " + f.Letter
			more--
		}
		t.Screen.Print("  %s, at %s: %s: %s", of, f.Record, cmp.Or(f.Class, "no class"), t.Redaction.Message(f.Message))
		if place, ok := strings.CutPrefix(f.Record, o.Topic+"/"); ok {
			t.Screen.Print("    redrive show %s %s", o.Topic, strings.Replace(place, "/", ":", 1))
		}
	}
	if more > 0 {
		t.Screen.Print("  and %s more failed again", cli.Letters(more))
	}
}

// reportLeft reports the letters that a finished run leaves open or pending.
func reportLeft(t *cli.Tool, o redrive.Outcome) {
	if open := openOf(o.Counts); open > 0 {
		t.Screen.Print("not sent, still open: %s", cli.Letters(open))
	}
	if o.Counts.Pending > 0 {
		t.Screen.Print("redrive status %s/%s reports the outcomes of the pending letters later", o.Topic, o.ID)
	}
}

// reportUnfinished names the commands that continue or end a run.
func reportUnfinished(t *cli.Tool, o redrive.Outcome) {
	run := o.Topic + "/" + o.ID
	t.Screen.Print("the run is unfinished: redrive resume %s continues it, redrive abort %s ends it", run, run)
}

// addNoWait adds a flag to a verb that ends as the run does.
func addNoWait(cmd *cobra.Command) (noWait *bool) {
	cli.Section(cmd, cli.SectionEnd, func(set *pflag.FlagSet) {
		noWait = set.Bool("no-wait", false, "exit with code 0 instead of 5 if no letter failed again and some have no outcome yet")
	})
	return noWait
}
