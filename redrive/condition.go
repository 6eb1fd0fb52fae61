package redrive

import (
	"fmt"
	"time"
)

// Condition says when [Redriver.Resume] and [Redriver.Abort] may take a run; all of several must
// hold. It is checked against the ledger as it is read while the run is claimed. No other process
// can write to it then, so what is claimed is what was checked. If a condition does not hold, the
// run stays with its process, and a *[RefusedError] with the reason [RefusedOwned] describes the
// run.
type Condition struct {
	silent bool
	claim  string
}

// IfSilent takes a run only if no process seems to have it. Either its process recorded that it
// stopped, or its last heartbeat is more than 20 s old and no other came within 7 s of listening.
// So a wrong clock misleads nobody. The condition does not hold if that cannot be found out, for
// example because the ledger cannot be read in time.
func IfSilent() Condition { return Condition{silent: true} }

// IfClaim takes a run only from the process that had it when an Outcome was read: claim is
// [Outcome.Claim]. An empty claim holds for no run, and neither does the zero Condition.
func IfClaim(claim string) Condition { return Condition{claim: claim} }

// lively is how long after its last heartbeat a run counts as running: three heartbeats, and some
// delay.
const lively = 20 * time.Second

// listening is how long a heartbeat is listened for: one comes within that time from a process that
// can write.
const listening = heartbeatEvery + 2*time.Second

// taking is the wish of this process to take a run.
type taking struct {
	topic, id  string
	conditions []Condition
	// of the claim to be written; a try before may have written it, and got no answer
	token string
	heard *record // the run as it was before and after it was listened for
}

// allowed returns a refusal if the run, as it is now, may not be taken.
func (w *taking) allowed(rec *record) error {
	if rec.Token == w.token || rec.State.Finished() {
		return nil
	}
	for _, c := range w.conditions {
		if !c.silent && rec.Token != c.claim {
			return w.refused(rec, "is running: %s took it over meanwhile", rec.Owner)
		}
		if !c.silent || rec.Stopped != nil {
			continue
		}
		since := max(0, time.Since(rec.Heartbeat)).Round(time.Second)
		switch {
		case since <= lively:
			return w.refused(rec, "is running: the last heartbeat of %s was %v ago", rec.Owner, since)
		case w.heard == nil:
			return w.refused(rec, "may be running: the last heartbeat of %s was %v ago, and the ledger could not be read in time to see whether another one came", rec.Owner, since)
		case w.heard.Token != rec.Token || !w.heard.Heartbeat.Equal(rec.Heartbeat):
			return w.refused(rec, "is running: a heartbeat of %s came just now, and by the clocks it is %v old: one clock is wrong", rec.Owner, since)
		}
	}
	return nil
}

func (w *taking) refused(rec *record, how string, args ...any) error {
	o := rec.outcome(w.topic)
	return &RefusedError{Topic: w.topic, Reason: RefusedOwned, Run: &o, Detail: fmt.Sprintf("run %s/%s ", w.topic, w.id) + fmt.Sprintf(how, args...)}
}
