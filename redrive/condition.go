package redrive

import (
	"fmt"
	"time"
)

// Condition restricts [Redriver.Resume] and [Redriver.Abort]; of several conditions all must hold.
// It is checked against the ledger while the run is being claimed. No other process can write to
// the ledger then, so the checked state is the claimed state. If a condition does not hold, the run
// stays with its process. The error is a *[RefusedError] with the reason [RefusedOwned], and
// describes the run.
type Condition struct {
	silent bool
	claim  string
}

// IfSilent holds if no process seems to own the run: its process recorded that it stopped, or its
// last heartbeat is older than [Outcome.SilentAfter] and no other arrives within 7 s. The wait
// makes the check independent of wrong clocks, unless the connection of the process is slow. A
// heartbeat that is ahead of this process's clock by more than SilentAfter counts as an old one;
// then the wait is longer if the connection was slow. The condition does not hold if the ledger
// cannot be read in time.
func IfSilent() Condition { return Condition{silent: true} }

// IfClaim holds if the process that owned the run when an Outcome was read still owns it; claim is
// [Outcome.Claim]. An empty claim holds for no run, and neither does the zero Condition.
func IfClaim(claim string) Condition { return Condition{claim: claim} }

// listening is how long a claim waits for a heartbeat. A process that can write sends one within
// that time.
const listening = heartbeatEvery + 2*time.Second

// listens returns how long a claim waits for another heartbeat of the run. The age of one that is
// ahead does not show that the process had the time for another one.
func listens(r *record, now time.Time) time.Duration {
	if r.Heartbeat.After(now) {
		return listening + 2*r.Timeout
	}
	return listening
}

// taking is an attempt to claim an existing run.
type taking struct {
	topic, id  string
	conditions []Condition
	// of the claim to be written; an earlier try may have written it without an answer
	token string
	// the run before the wait for a heartbeat; nil if the ledger could not be read after it
	before *record
}

// allowed returns a refusal if a condition does not hold for the run's present state.
func (w *taking) allowed(rec *record) error {
	if rec.Token == w.token || rec.State.Finished() {
		return nil
	}
	for _, c := range w.conditions {
		if !c.silent && rec.Token != c.claim {
			return w.refused(rec, "is running: %s took it over meanwhile", rec.Owner)
		}
		if !c.silent || !rec.Stopped.IsZero() {
			continue
		}
		now := time.Now()
		since := now.Sub(rec.Heartbeat).Round(time.Second)
		age := fmt.Sprintf("%v old", since)
		if since < 0 {
			age = fmt.Sprintf("%v ahead", -since)
		}
		switch {
		case rec.isFresh(now):
			return w.refused(rec, "is running: the last heartbeat of %s was %v ago", rec.Owner, max(0, since))
		case w.before == nil:
			return w.refused(rec, "may be running: the last heartbeat of %s is %s, and the ledger could not be read in time for a newer one: try again", rec.Owner, age)
		case w.before.Token != rec.Token || !w.before.Heartbeat.Equal(rec.Heartbeat):
			return w.refused(rec, "is running: a heartbeat of %s came just now, and is %s by its timestamp: one of the clocks is wrong", rec.Owner, age)
		}
	}
	return nil
}

func (w *taking) refused(rec *record, how string, args ...any) error {
	o := rec.outcome(w.topic)
	return &RefusedError{Topic: w.topic, Reason: RefusedOwned, Run: &o, Detail: fmt.Sprintf("run %s/%s ", w.topic, w.id) + fmt.Sprintf(how, args...)}
}
