package run

// The verb that reports how far a run is, and the outcomes of its letters.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

// NewStatus makes the verb status.
func NewStatus(t *cli.Tool) *cobra.Command {
	var followed bool
	var noWait *bool
	cmd := &cobra.Command{
		Use:   "status RUN",
		Short: "Report how far a run is, and what became of its records",
		Long: `Status reports how far a run is, whichever process owns it, and what became of the letters that it redrove. It reads
their outcomes from the cluster, since some become known only after the run's end. It writes nothing.

With --follow it shows the progress of the run as run itself does, until the run is done, aborted or stopped, and then
ends with the exit code of run. Ctrl-C ends only status: the run goes on.`,
		Example: `  redrive status orders.dlq/20260102-150405-a1b2c3
  redrive status orders.dlq/20260102-150405-a1b2c3 --follow
  redrive status orders.dlq/20260102-150405-a1b2c3 -o json | jq .pending`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if *noWait && !followed {
				err = errors.New("--no-wait is for status --follow")
			}
			return onRun(cmd.Context(), t, args[0], func(ctx context.Context, r *redrive.Redriver, topic, id string) error {
				if followed {
					return followRun(ctx, t, r, topic, id, *noWait)
				}
				t.Screen.Status("reading the outcomes of %s/%s …", topic, id)
				o, err := r.Status(ctx, topic, id)
				if err != nil {
					return err
				}
				warnOfSilence(t, o)
				return showOutcome(t, o)
			}, err)
		},
	}
	cli.Section(cmd, cli.SectionOthers, func(set *pflag.FlagSet) {
		set.BoolVar(&followed, "follow", false, "show the run's progress until it ends")
	})
	noWait = addNoWait(cmd)
	return cmd
}

const (
	// askEvery is how often the progress of a run is read. Its process writes it every five
	// seconds.
	askEvery = 5 * time.Second
	// showEvery is how often the progress is shown, so that the countdown goes on.
	showEvery = time.Second
	// patience is how long a cluster may fail to answer before status gives up.
	patience = 2 * time.Minute
)

// followRun shows the progress of a run that any process owns, until the run ends, or has had no
// process for some time.
func followRun(ctx context.Context, t *cli.Tool, r *redrive.Redriver, topic, id string, noWait bool) error {
	f := &follower{redriver: r, topic: topic, id: id}
	f.view = newView(t, func(e redrive.Event) {
		t.Screen.Print("run %s/%s of %s: %d of %s were sent; %s", topic, id, e.Owner, e.Counts.Sent, cli.Letters(e.Counts.Selected), rateText(e.Pace))
	})
	tick := time.NewTicker(showEvery)
	defer tick.Stop()
	for err := f.begin(ctx); !f.over(); err = f.ask(ctx) {
		if err != nil {
			return err
		}
		f.showRun()
		select {
		case <-ctx.Done():
			t.Screen.Print("the run goes on: redrive status %s/%s --follow follows it again", topic, id)
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	o := f.is
	if f.recorded {
		t.Screen.Status("reading the outcomes of %s/%s …", topic, id)
		var err error
		if o, err = r.Status(ctx, topic, id); err != nil {
			return err
		}
	}
	return finish(ctx, t, r, o, followedError(t, o, f.silent()), noWait)
}

// goneAfter is the time without a heartbeat after which a followed run seems to have no process. A
// process lives on while its brokers take no writes, and sends no heartbeat then. So it is as long
// as brokers may fail to answer.
const goneAfter = patience

// A follower reads a run's record again and again.
type follower struct {
	*view
	redriver  *redrive.Redriver
	topic, id string

	is             redrive.Outcome
	recorded       bool // it is the run's record, without the outcomes that status finds
	asked          time.Time
	answered       time.Time
	heartbeatRead  time.Time // when its last heartbeat was read
	stopPrinted    bool
	silencePrinted bool // that no heartbeat comes
}

// begin reads what status prints without --follow: the run's record may be some seconds old, and
// follow must not show less than status has.
func (f *follower) begin(ctx context.Context) error {
	f.Screen.Status("reading the outcomes of %s/%s …", f.topic, f.id)
	recorded, err := f.redriver.Progress(ctx, f.topic, f.id)
	if err != nil {
		return err
	}
	f.speed.add(recorded)
	if f.is, err = f.redriver.Status(ctx, f.topic, f.id); err != nil {
		return err
	}
	f.asked = time.Now()
	f.answered, f.heartbeatRead = f.asked, f.asked
	if f.is.Stopped.IsZero() {
		warnOfSilence(f.Tool, f.is)
	}
	return nil
}

// ask reads the run's record if that is due. It returns an error that ends status.
func (f *follower) ask(ctx context.Context) error {
	now := time.Now()
	if now.Sub(f.asked) < askEvery {
		return nil
	}
	f.asked = now
	is, err := f.redriver.Progress(ctx, f.topic, f.id)
	if err != nil {
		return unanswered(ctx, f.Tool, err, now.Sub(f.answered))
	}
	f.answered = now
	if !is.Heartbeat.Equal(f.is.Heartbeat) {
		f.heartbeatRead = now
		if f.silencePrinted && !is.State.Finished() {
			f.Screen.Print("%s is heard from again", is.Owner)
		}
		f.silencePrinted = false
	}
	if is.Claim != f.is.Claim && !is.State.Finished() {
		f.Screen.Print("%s resumed the run", is.Owner)
		f.stopPrinted = false
	}
	f.speed.add(is)
	f.is, f.recorded = notBehind(is, f.is), true
	return nil
}

// notBehind is a run's record with the counts that were shown before, while those are ahead of it:
// status finds outcomes that the run's process has not recorded yet.
func notBehind(is, shown redrive.Outcome) redrive.Outcome {
	was, now := shown.Counts, is.Counts
	if !is.State.Finished() && (now.Sent < was.Sent || now.Sent-now.Pending < was.Sent-was.Pending) {
		is.Counts = was
	}
	return is
}

// over reports whether there is nothing to follow any more.
func (f *follower) over() bool { return f.is.State.Finished() || f.silent() }

// silent reports whether no heartbeat was read for so long that no process owns the run. An old
// heartbeat alone shows nothing, since a clock may be wrong. Nor does a run that was stopped: to
// change its pace is to stop and to resume it, and resume may wait for some seconds.
func (f *follower) silent() bool {
	after := max(goneAfter, f.is.SilentAfter)
	if !f.is.Stopped.IsZero() {
		after = silentAfter
	}
	return f.answered.Sub(f.heartbeatRead) > after
}

func (f *follower) showRun() {
	switch {
	case f.is.Stopped.IsZero() && f.answered.Sub(f.heartbeatRead) > silentAfter:
		if !f.silencePrinted {
			f.silencePrinted = true
			f.Screen.Print("no heartbeat of %s has come for %s: its process is gone, or the ledger can't be written or read to its end; waiting until it is %s",
				f.is.Owner, output.Duration(silentAfter), output.Duration(goneAfter))
		}
		f.Screen.Status("waiting for a heartbeat of %s", f.is.Owner)
	case f.is.Stopped.IsZero():
		f.show(redrive.Event{Outcome: f.is})
	case !f.stopPrinted:
		f.stopPrinted = true
		f.Screen.Print("%s stopped the run; waiting %s for somebody to resume it", f.is.Owner, output.Duration(silentAfter))
	default:
		f.Screen.Status("stopped: waiting for somebody to resume the run")
	}
}

// unanswered decides what to do about an error: a run goes on while brokers are away, and so does
// its follower. An error at the beginning, and one that waiting can't cure, ends status.
func unanswered(ctx context.Context, t *cli.Tool, err error, since time.Duration) error {
	if ctx.Err() != nil || since > patience || errors.Is(err, redrive.ErrNoRun) || cli.IsA[*redrive.DeniedError](err) {
		return err
	}
	t.Screen.Print("the run's progress can't be read: %v; trying again", err)
	return nil
}

// followedError is the error of a run that ended, as its own process reported it, or of one that
// has no process.
func followedError(t *cli.Tool, o redrive.Outcome, gone bool) error {
	run := o.Topic + "/" + o.ID
	switch {
	case o.State == redrive.Done:
		return nil // finish looks at the letters
	case o.State == redrive.Aborted && !strings.HasPrefix(o.Cause, byHand) && o.Cause != redrive.ErrTopicRecreated.Error():
		return cli.Coded(cli.ExitFailedAgain, fmt.Errorf("%s aborted: %s", run, o.Cause))
	case o.State == redrive.Aborted:
		return fmt.Errorf("%s ended: %s", run, o.Cause)
	case gone && o.Stopped.IsZero():
		since, _ := silent(o, t.Now())
		return fmt.Errorf("%s has no process: %s was last heard from %s ago", run, o.Owner, output.Duration(max(0, since).Round(time.Second)))
	}
	return fmt.Errorf("%s was stopped", run)
}

// byHand begins the cause of a run that an operator aborted.
const byHand = "aborted by "
