package operate

import (
	"context"
	"slices"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/request"
	"github.com/sidingkafka/siding/serve/internal/watch"
)

// ListRuns returns the runs of a topic, the newest first.
func ListRuns(ctx context.Context, d *Desk, who *access.Identity, in *request.Runs) ([]api.Run, error) {
	t, err := TopicFor(ctx, d, who, in.Topic.Topic, access.Viewer)
	if err != nil {
		return nil, err
	}
	return runsOf(d, t, in.Newest), nil
}

// ListAllRuns returns the runs of all topics, the newest first.
func ListAllRuns(ctx context.Context, d *Desk, who *access.Identity, in *request.Newest) ([]api.Run, error) {
	all := []api.Run{}
	for _, t := range topicsFor(d, who, access.Viewer) {
		all = append(all, runsOf(d, t, *in)...)
	}
	slices.SortStableFunc(all, func(a, b api.Run) int { return b.Started.Compare(a.Started) })
	return newest(all, *in, func(r *api.Run) bool { return redrive.State(r.State).Finished() }), nil
}

func runsOf(d *Desk, t *watch.Topic, n request.Newest) []api.Run {
	known, live := t.Known(), map[string]redrive.Outcome{}
	for _, l := range d.Runner.OnTopic(t.DeadLetterTopic.Topic) {
		o, _, _ := l.Get()
		live[o.ID] = o
	}
	for id, o := range live {
		if !slices.ContainsFunc(known, func(k redrive.Outcome) bool { return k.ID == id }) {
			known = append(known, o)
		}
	}
	slices.SortStableFunc(known, func(a, b redrive.Outcome) int { return b.Started.Compare(a.Started) })
	all := []api.Run{}
	for _, o := range newest(known, n, func(o *redrive.Outcome) bool { return o.State.Finished() || live[o.ID].State.Finished() }) {
		all = append(all, runAs(d, t, &o))
	}
	return all
}

// newest keeps the first runs, and all that have not ended.
func newest[T any](all []T, n request.Newest, ended func(*T) bool) []T {
	kept := 0
	return slices.DeleteFunc(all, func(r T) bool {
		if n.Limit == 0 || kept < n.Limit {
			kept++
			return false
		}
		return ended(&r)
	})
}

// GetRun returns a run.
func GetRun(ctx context.Context, d *Desk, who *access.Identity, in *request.Run) (api.Run, error) {
	t, err := TopicFor(ctx, d, who, in.Topic.Topic, access.Viewer)
	if err != nil {
		return api.Run{}, err
	}
	o, err := outcomeOf(ctx, d, t, in.Run)
	if err != nil {
		return api.Run{}, err
	}
	if o.State.Finished() && o.Counts.Pending > 0 { // outcomes come after the end, too
		now, err := Attend(ctx, d, t, func(ctx context.Context) (redrive.Outcome, error) {
			return d.cfg.Redriver.Status(ctx, in.Topic.Topic, in.Run)
		})
		if err == nil {
			o = now
		}
	}
	return runAs(d, t, &o), nil
}

// outcomeOf returns what is known of a run. A run that another server has just begun is looked up.
func outcomeOf(ctx context.Context, d *Desk, t *watch.Topic, id string) (redrive.Outcome, error) {
	for _, o := range t.Known() {
		if o.ID == id {
			return o, nil
		}
	}
	if l := d.Runner.Of(t.DeadLetterTopic.Topic, id, nil); l != nil {
		o, _, _ := l.Get()
		return o, nil
	}
	o, err := Attend(ctx, d, t, func(ctx context.Context) (redrive.Outcome, error) {
		return d.cfg.Redriver.Progress(ctx, t.DeadLetterTopic.Topic, id)
	})
	if err != nil {
		return o, err
	}
	t.Observe(o)
	return o, nil
}

// runAs returns a run as the API shows it. What this process knows of a run that it owns is newer
// than the ledger.
func runAs(d *Desk, t *watch.Topic, o *redrive.Outcome) api.Run {
	var notices []string
	here := false
	if l := d.Runner.Of(t.DeadLetterTopic.Topic, o.ID, o); l != nil {
		last, said, ended := l.Get()
		if watch.Newer(&last, o) {
			o = &last
		}
		notices, here = said, !ended
	}
	c, waiting := o.Counts, o.Waiting
	if why := d.Runner.blockedBy(t.DeadLetterTopic.Topic, o.ID); why != "" && !here && !o.State.Finished() {
		waiting = why
	}
	notices = slices.Clone(notices) // errors of brokers and of edits may quote letters
	for i := range notices {
		notices[i] = failure.Outside(d.cfg.Redact, notices[i])
	}
	return api.Run{
		Topic: o.Topic, ID: o.ID, State: string(o.State), Waiting: failure.Outside(d.cfg.Redact, waiting), Cause: failure.Outside(d.cfg.Redact, o.Cause), By: o.By, Why: d.cfg.Redact.Text(o.Why), Owner: o.Owner, Claim: o.Claim, Here: here,
		Silent: !here && t.Silent(o), Started: o.Started.UTC(), Heartbeat: o.Heartbeat.UTC(), Stopped: timeOr(o.Stopped), Ended: timeOr(o.Ended), Resumed: resumptionsOf(o), WindowEnds: timeOr(o.WindowEnds),
		Pace: api.Pace{
			Rate: o.Pace.Rate, Burst: o.Pace.Burst, Canary: o.Pace.Canary, Tolerate: o.Pace.Tolerate, TolerateShare: o.Pace.TolerateShare,
			RampMs: o.Pace.Ramp.Milliseconds(), WindowMs: o.Pace.Window.Milliseconds(), MaxLag: o.Pace.MaxLag,
		},
		Rate: o.RateAt(o.Heartbeat), Counts: api.Counts(c), Notices: notices,
	}
}

// resumptionsOf returns who resumed a run, and which limits they changed.
func resumptionsOf(o *redrive.Outcome) (all []api.Resumption) {
	for _, r := range o.Resumed {
		is := api.Resumption{At: r.At.UTC(), Owner: r.Owner}
		for _, c := range r.Changed {
			is.Changed = append(is.Changed, api.PaceChange(c))
		}
		all = append(all, is)
	}
	return all
}

// AbortRun ends a run, wherever its process is.
func AbortRun(ctx context.Context, d *Desk, who *access.Identity, in *request.Abort) (api.Run, error) {
	name := in.Topic.Topic
	why, err := reasonOf(in.Body.Why, false)
	if err != nil {
		return api.Run{}, err
	}
	t, err := TopicFor(ctx, d, who, name, access.Operator)
	if err != nil {
		return api.Run{}, err
	}
	if err := d.cfg.Redriver.Abort(ctx, name, in.Run.Run, redrive.AbortOptions{By: who.Name, Why: why}); err != nil {
		return api.Run{}, problemOn(ctx, d, t, err)
	}
	o, err := d.cfg.Redriver.Progress(ctx, name, in.Run.Run)
	if err != nil {
		return api.Run{}, failure.NewProblem(failure.KindOf(err), "the run was aborted, but its numbers cannot be read: %s", failure.Text(err))
	}
	t.Observe(o)
	return runAs(d, t, &o), nil
}

// ResumeRun continues a run here.
func ResumeRun(ctx context.Context, d *Desk, who *access.Identity, in *request.Resume) (api.Run, error) {
	t, err := TopicFor(ctx, d, who, in.Topic.Topic, access.Operator)
	if err != nil {
		return api.Run{}, err
	}
	condition := redrive.IfSilent()
	if in.Body.Claim != "" {
		condition = redrive.IfClaim(in.Body.Claim)
	}
	read, err := outcomeOf(ctx, d, t, in.Run.Run)
	if err != nil {
		return api.Run{}, err
	}
	// As getRun shows it: what was read of the ledger may be older than the end of a run of this
	// process.
	if before := runAs(d, t, &read); redrive.State(before.State).Finished() {
		return api.Run{}, failure.NewProblem(api.RunHeld, "run %s/%s is %s: a run that has ended is not resumed; begin a new one", in.Topic.Topic, in.Run.Run, before.State)
	}
	o, err := d.Runner.Launch(in.Topic.Topic, func(ctx context.Context, on func(redrive.Event)) (redrive.Outcome, error) {
		return d.cfg.Redriver.Resume(ctx, in.Topic.Topic, in.Run.Run, redrive.RunOptions{By: who.Name, Pace: paceOf(&in.Body.Pace), On: on}, condition)
	})
	if err != nil {
		return api.Run{}, problemOn(ctx, d, t, err)
	}
	if _, noted := watch.RunNotes(t)[o.ID]; !noted {
		if err := recordRun(ctx, d, t, o.ID, &watch.RunNote{V: 1, By: who.Name, At: time.Now().UTC()}); err != nil {
			d.cfg.Log.Warn("siding: a resumed run could not be noted in the ledger: no other server goes on with it by itself", "topic", o.Topic, "run", o.ID, "error", err)
		}
	}
	return runAs(d, t, &o), nil
}
