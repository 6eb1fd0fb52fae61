package console

import (
	"fmt"
	"strings"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/number"
)

// The words of runs: how far they are, and how they ended.

// isOver reports whether a run has ended.
func isOver(r *api.Run) bool { return redrive.State(r.State).Finished() }

// runText returns in words how far a run is.
func runText(o *redrive.Outcome) string {
	n := &o.Counts
	says := []string{string(o.State), fmt.Sprintf("%s of %s sent", number.Format(n.Sent), number.Format(n.Selected)), number.Format(n.Succeeded) + " succeeded"}
	if n.Failed > 0 {
		says = append(says, number.Format(n.Failed)+" failed again")
	}
	if n.Retrying > 0 {
		says = append(says, number.Format(n.Retrying)+" failed again and will be retried")
	}
	if fresh := n.Pending - n.Retrying; fresh > 0 {
		says = append(says, number.Format(fresh)+" pending")
	}
	if o.Waiting != "" {
		says = append(says, o.Waiting)
	}
	return strings.Join(says, " · ")
}

// runPhrases returns in words how a run is.
func runPhrases(r *api.Run, now time.Time) (all []phrase) {
	n := &r.Counts
	add := func(red bool, format string, args ...any) {
		all = append(all, phrase{Text: fmt.Sprintf(format, args...), Red: red})
	}
	left := n.Selected - n.Sent
	switch redrive.State(r.State) {
	case redrive.Canary:
		add(false, "the first letters are out, the others wait for their outcomes")
	case redrive.Sending:
		add(false, "sending")
	case redrive.Watching:
		add(false, "all are sent, watching whether they fail again")
	case redrive.Waiting:
		add(false, "sends nothing now")
	case redrive.Done:
		add(false, "done")
	case redrive.Aborted:
		add(true, "aborted")
	default:
		add(false, "%s", r.State)
	}
	if r.Cause != "" {
		add(true, "%s", r.Cause)
	}
	if r.Waiting != "" && !isOver(r) {
		add(false, "it waits: %s", r.Waiting)
	}
	if r.Silent {
		all = append(all, phrase{Text: "no process owns it; the last sign of one was", Red: true, At: momentOf(r.Heartbeat, now)})
	}
	add(false, "%s of %s sent", number.Format(n.Sent), number.Format(n.Selected))
	add(false, "%s succeeded", number.Format(n.Succeeded))
	if n.Failed > 0 {
		add(true, "%s failed again", number.Format(n.Failed))
	}
	if n.Retrying > 0 {
		add(true, "%s failed again and will be retried", number.Format(n.Retrying))
	}
	if fresh := n.Pending - n.Retrying; fresh > 0 {
		add(false, "%s pending", number.Format(fresh))
	}
	if isOver(r) && left > 0 {
		add(false, "%s not sent", number.Format(left))
	}
	return all
}

// doneText says when a run that goes on will be done, if it goes on as now: at a rate, with nothing
// that it waits for.
func doneText(r *api.Run, rate float64, now time.Time) string {
	window := time.Duration(max(r.Pace.WindowMs, 0)) * time.Millisecond
	left := r.Counts.Selected - r.Counts.Sent
	for _, n := range r.Counts.Skipped {
		left -= n
	}
	switch {
	case r.Silent:
		return "not without a process"
	case r.State == string(redrive.Waiting) || r.Waiting != "":
		return "unknown while it waits"
	case r.State == string(redrive.Canary):
		return "unknown until the first outcome"
	case r.State == string(redrive.Watching):
		if r.WindowEnds == nil {
			return "unknown yet"
		}
		return aboutText(r.WindowEnds.Sub(now))
	case left <= 0 || rate < 0:
		return aboutText(window)
	case rate == 0:
		return "unknown while nothing is sent"
	}
	return aboutText(time.Duration(min(float64(left)/rate, 1e8)*float64(time.Second)) + window)
}

func aboutText(d time.Duration) string {
	if d < time.Second {
		return "any moment"
	}
	return "in about " + span(d)
}

// notSent says what became of the letters that a run did not send, and whether any were open at its
// end.
func notSent(n *api.Counts) (says string, left bool) {
	expired, resolved := n.Skipped[redrive.SkippedExpired], n.Skipped[redrive.SkippedResolved]
	open := n.Selected - n.Sent - expired - resolved
	var all []string
	for _, of := range []struct {
		n    int64
		what string
	}{{expired, "expired before"}, {resolved, "got an outcome otherwise"}, {open, "stayed open"}} {
		if of.n > 0 {
			all = append(all, number.Format(of.n)+" "+of.what)
		}
	}
	if len(all) == 0 {
		return "", false
	}
	return "Of the letters that were not sent, " + list(all) + ".", open > 0
}

// actOnRun is a resume or an abort of a run, through a process.
type actOnRun struct {
	what, by, process, why string
	at                     time.Time
}

// actsOnRun returns who resumed a run, and who aborted it.
func actsOnRun(o *redrive.Outcome) (all []actOnRun) {
	act := func(what, owner, why string, at time.Time) {
		by, process := owner, ""
		if i := strings.LastIndex(owner, " on "); i >= 0 {
			by, process = owner[:i], owner[i+len(" on "):]
		}
		all = append(all, actOnRun{what, by, process, why, at})
	}
	for _, r := range o.Resumed {
		what := "resumed a run"
		for i, c := range r.Changed {
			what += []string{" with ", ", "}[min(i, 1)] + c.Field + " " + c.To + " instead of " + c.From
		}
		act(what, r.Owner, "", r.At)
	}
	if cause, ok := strings.CutPrefix(o.Cause, "aborted by "); ok && o.State == redrive.Aborted {
		why, _ := strings.CutPrefix(strings.TrimPrefix(cause, o.Owner), ": ")
		act("aborted a run", o.Owner, why, o.Ended)
	}
	return all
}
