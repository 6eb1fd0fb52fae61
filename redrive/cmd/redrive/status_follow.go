package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

const (
	// askEvery is how often the progress of a run is read. Its process writes it every five
	// seconds.
	askEvery = 5 * time.Second
	// showEvery is how often the progress is shown, so that the countdown goes on.
	showEvery = time.Second
	// patience is how long a cluster may fail to answer before status gives up.
	patience = 2 * time.Minute
)

// followRun shows the progress of a run that any process owns, until the run ends or its process
// does.
func followRun(ctx context.Context, t *tool, r *redrive.Redriver, topic, id string, end ending) error {
	on := follow(t, func(e redrive.Event) {
		t.screen.Say("run %s/%s of %s: %d of %s were sent; %s", topic, id, e.Owner, e.Counts.Sent, letters(e.Counts.Selected), rateText(e.Pace))
	})
	tick := time.NewTicker(showEvery)
	defer tick.Stop()
	var o redrive.Outcome
	var asked, answered time.Time
	var beat, beatSeen time.Time // the last heartbeat, and when it was read
	gone := false
	for {
		now := time.Now()
		if now.Sub(asked) >= askEvery {
			asked = now
			is, err := r.Progress(ctx, topic, id)
			if err == nil {
				o, answered = is, now
				if !o.Heartbeat.Equal(beat) {
					beat, beatSeen = o.Heartbeat, now
				}
				gone = answered.Sub(beatSeen) > quiet(t, o)
			} else if err := unanswered(ctx, t, err, now.Sub(answered)); err != nil {
				return err
			}
		}
		if o.State.Finished() || !o.Stopped.IsZero() || gone {
			break
		}
		on(redrive.Event{Outcome: o, Rate: o.Pace.Rate})
		select {
		case <-ctx.Done():
			t.screen.Say("the run goes on: redrive status %s/%s --follow follows it again", topic, id)
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	t.screen.Status("reading the outcomes of %s/%s …", topic, id)
	o, err := r.Status(ctx, topic, id)
	if err != nil {
		return err
	}
	return finish(ctx, t, r, o, followedError(t, o, gone), end)
}

// quiet is how long a run may have no new heartbeat. An old heartbeat alone shows nothing, since
// one of the clocks may be wrong, but then two reads show enough.
func quiet(t *tool, o redrive.Outcome) time.Duration {
	if _, old := silent(o, t.now()); old {
		return 2*askEvery + showEvery
	}
	return silentAfter
}

// unanswered decides what to do about an error: a run goes on while brokers are away, and so does
// the one who follows it. An error at the beginning, and one that waiting can't cure, ends status.
func unanswered(ctx context.Context, t *tool, err error, since time.Duration) error {
	if ctx.Err() != nil || since > patience || errors.Is(err, redrive.ErrNoRun) || isA[*redrive.DeniedError](err) {
		return err
	}
	t.screen.Say("the run's progress can't be read: %v; trying again", err)
	return nil
}

// followedError is the error of a run that ended, as its own process reported it, or of one that
// has no process.
func followedError(t *tool, o redrive.Outcome, gone bool) error {
	run := o.Topic + "/" + o.ID
	switch {
	case o.State == redrive.Done:
		return nil // finish looks at the letters
	case o.State == redrive.Aborted && !strings.HasPrefix(o.Cause, byHand) && o.Cause != redrive.ErrTopicRecreated.Error():
		return coded(exitFailedAgain, fmt.Errorf("%s aborted: %s", run, o.Cause))
	case o.State == redrive.Aborted:
		return fmt.Errorf("%s ended: %s", run, o.Cause)
	case gone && o.Stopped.IsZero():
		since, _ := silent(o, t.now())
		return fmt.Errorf("%s has no process: %s was last heard from %s ago", run, o.Owner, output.Duration(max(0, since).Round(time.Second)))
	}
	return fmt.Errorf("%s was stopped", run)
}

// byHand begins the cause of a run that an operator aborted.
const byHand = "aborted by "
