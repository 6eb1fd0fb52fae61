package run

// The end of a run in words.

import (
	"fmt"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

// runFields are a run as a row.
func runFields(o redrive.Outcome, now time.Time) []output.Field {
	field, c := output.NewField, o.Counts
	failed := output.Pair{Table: fmt.Sprint(c.Failed), JSON: c.Failed}
	if c.Retrying > 0 {
		failed.Table = fmt.Sprintf("%d, %d retried", c.Failed, c.Retrying)
	}
	return []output.Field{
		field("run", "RUN", o.Topic+"/"+o.ID),
		stateField(o, now),
		field("started", "STARTED", output.Ago(o.Started)).Spare(5),
		field("stopped", "", output.Ago(o.Stopped)),
		field("ended", "ENDED", output.Ago(o.Ended)).Spare(7),
		field("selected", "SELECTED", c.Selected).Right().Spare(6),
		field("sent", "SENT", c.Sent).Right().Spare(4),
		field("succeeded", "SUCCEEDED", c.Succeeded).Right().Spare(3),
		field("failed", "FAILED", failed).Right().Spare(1).Toned(badUnlessZero(c.Failed + c.Retrying)),
		field("retrying", "", c.Retrying),
		field("discarded", "", c.Discarded),
		field("pending", "PENDING", c.Pending).Right().Spare(2),
		field("unknown", "", c.Unknown),
		field("unfollowed", "", c.Unfollowed),
		field("by", "BY", o.By).Spare(8),
		field("why", "WHY", output.OrNil(o.Why)).MayCut(),
		field("cause", "", output.OrNil(o.Cause)),
		field("owner", "", o.Owner),
		field("heartbeat", "", output.Ago(o.Heartbeat)),
	}
}

// showOutcome prints a run.
func showOutcome(t *cli.Tool, o redrive.Outcome) error {
	return t.Screen.Object(outcomeFields(t, o)...)
}

// outcomeFields are a run as an object.
func outcomeFields(t *cli.Tool, o redrive.Outcome) []output.Field {
	c := o.Counts
	heartbeat, waits := "HEARTBEAT", "WAITS FOR"
	if o.State.Finished() {
		heartbeat = "" // it matters only while the run goes on
	}
	if !o.Stopped.IsZero() {
		waits = "" // it waits for resume or abort, as a message shows
	}
	field := output.NewField
	return []output.Field{
		field("run", "RUN", o.Topic+"/"+o.ID),
		stateField(o, t.Now()),
		field("waiting", waits, output.OrNil(o.Waiting)),
		field("cause", "CAUSE", output.OrNil(o.Cause)),
		field("by", "BY", o.By),
		field("why", "WHY", output.OrNil(o.Why)),
		field("owner", "OWNER", o.Owner),
		field("heartbeat", heartbeat, output.Ago(o.Heartbeat)),
		field("started", "STARTED", output.Ago(o.Started)),
		field("stopped", "STOPPED", output.Ago(o.Stopped)),
		field("ended", "ENDED", output.Ago(o.Ended)),
		leftField(o, t.Now()),
		field("windowEnds", "", output.Ago(o.WindowEnds)),
		field("rate", "", rateCell(o.Pace.Rate)),
		field("selected", "SELECTED", c.Selected),
		field("sent", "SENT", c.Sent),
		field("succeeded", "SUCCEEDED", c.Succeeded),
		field("failed", "FAILED AGAIN", c.Failed).Toned(badUnlessZero(c.Failed)),
		field("failedByClass", "", output.Pair{JSON: output.OrEmpty(c.FailedByClass)}),
		field("retrying", "RETRYING", output.Explained(c.Retrying, " of the pending: failed again, and in a retry topic")).Toned(output.Bad),
		field("discarded", "DISCARDED", output.UnlessZero(c.Discarded)),
		field("pending", "PENDING", c.Pending),
		field("unknown", "UNKNOWN", output.UnlessZero(c.Unknown)),
		field("unfollowed", "NOT FOLLOWED", output.UnlessZero(c.Unfollowed)),
		field("skipped", "NOT SENT", output.Pair{Table: cli.CountsText(c.Skipped), JSON: output.OrEmpty(c.Skipped)}),
	}
}

// leftField is the time that is left of a run's phase, as far as its record shows it.
func leftField(o redrive.Outcome, now time.Time) output.Field {
	cell := output.Pair{}
	_, gone := silent(o, now)
	o.Heartbeat = now // the outcomes of the letters are as of now
	left, known := timeLeft(o, 0, now)
	switch {
	case !known || gone: // no process sends or watches
	case o.State == redrive.Sending:
		cell = output.Pair{Table: fmt.Sprintf("%s of sending %s, then a window of %s", output.Duration(left), rateText(o.Pace), output.Duration(o.Pace.Window)), JSON: left}
	default:
		cell.Table = output.Duration(left) + " of the window"
	}
	return output.NewField("sendingLeftMs", "TIME LEFT", cell)
}

// rateCell is a rate in records a second, and nothing without a limit.
func rateCell(rate float64) any {
	if rate <= 0 {
		return nil
	}
	return rate
}

// openOf is how many letters of a run were not sent and are open. Skipped letters are open too,
// unless they expired or another process resolved them.
func openOf(c redrive.Counts) int64 {
	return c.Selected - c.Sent - c.Skipped[redrive.SkippedExpired] - c.Skipped[redrive.SkippedResolved]
}

// silentAfter is the shortest time without a heartbeat after which a run seems to have no process.
const silentAfter = 20 * time.Second

// silent returns the time since a run's last heartbeat, and whether the run is unfinished and that
// time is so long that no process owns it.
func silent(o redrive.Outcome, now time.Time) (since time.Duration, yes bool) {
	since = now.Sub(o.Heartbeat)
	return since, !o.State.Finished() && since > max(silentAfter, o.SilentAfter)
}

// stateOf is a run's state in words. The ledger has what the process did last; an operator needs to
// know whether it was stopped, or is silent.
func stateOf(o redrive.Outcome, now time.Time) string {
	if _, gone := silent(o, now); !o.Stopped.IsZero() && !o.State.Finished() {
		return "stopped"
	} else if gone {
		return "unfinished"
	}
	return string(o.State)
}

// stateField is a run's state. JSON has what the ledger has.
func stateField(o redrive.Outcome, now time.Time) output.Field {
	text := stateOf(o, now)
	return output.NewField("state", "STATE", output.Pair{Table: text, JSON: string(o.State)}).Toned(stateTone(text))
}

// stateTone is how an operator should take a run's state.
func stateTone(text string) output.Tone {
	switch text {
	case string(redrive.Done):
		return output.Good
	case string(redrive.Aborted):
		return output.Bad
	case string(redrive.Canary), string(redrive.Sending), string(redrive.Watching):
		return output.Busy
	}
	return output.Caution // it waits, or for an operator
}

// badUnlessZero is the tone of a count of failures.
func badUnlessZero(n int64) output.Tone {
	if n == 0 {
		return ""
	}
	return output.Bad
}

// ActiveOwner returns the process that seems to own a run, in words.
func ActiveOwner(t *cli.Tool, o redrive.Outcome) (owner string, active bool) {
	since, gone := silent(o, t.Now())
	if o.ID == "" || o.State.Finished() || !o.Stopped.IsZero() || gone {
		return "", false
	}
	return fmt.Sprintf("%s was last heard from %s ago", o.Owner, output.Duration(max(0, since).Round(time.Second))), true
}

// warnOfSilence warns of an unfinished run without a heartbeat for some time.
func warnOfSilence(t *cli.Tool, o redrive.Outcome) {
	if since, gone := silent(o, t.Now()); gone {
		run := o.Topic + "/" + o.ID
		where := ""
		if o.Waiting != "" {
			where = " (" + o.Waiting + ")"
		}
		t.Screen.Warn("run %s is unfinished%s, and %s was last heard from %s ago: redrive resume %s continues it, redrive abort %s ends it",
			run, where, o.Owner, since.Round(time.Second), run, run)
	}
}
