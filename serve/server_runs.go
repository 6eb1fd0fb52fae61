package serve

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/request"
	"github.com/sidingkafka/siding/serve/internal/rule"
	"github.com/sidingkafka/siding/serve/internal/watch"
)

// listRuns returns the runs of a topic, the newest first.
func (s *Server) listRuns(ctx context.Context, in *request.Runs) ([]api.Run, error) {
	t, err := s.topicFor(ctx, in.Topic.Topic, access.Viewer)
	if err != nil {
		return nil, err
	}
	return s.runsOf(t, in.Newest), nil
}

// listAllRuns returns the runs of all topics, the newest first.
func (s *Server) listAllRuns(ctx context.Context, in *request.Newest) ([]api.Run, error) {
	all := []api.Run{}
	for _, t := range s.topicsFor(ctx, access.Viewer) {
		all = append(all, s.runsOf(t, *in)...)
	}
	slices.SortStableFunc(all, func(a, b api.Run) int { return b.Started.Compare(a.Started) })
	return newest(all, *in, func(r *api.Run) bool { return redrive.State(r.State).Finished() }), nil
}

func (s *Server) runsOf(t *watch.Topic, n request.Newest) []api.Run {
	known, live := t.Known(), map[string]redrive.Outcome{}
	for _, l := range s.runner.onTopic(t.DeadLetterTopic.Topic) {
		o, _, _ := l.get()
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
		all = append(all, s.runAs(t, &o))
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

// getRun returns a run.
func (s *Server) getRun(ctx context.Context, in *request.Run) (api.Run, error) {
	t, err := s.topicFor(ctx, in.Topic.Topic, access.Viewer)
	if err != nil {
		return api.Run{}, err
	}
	o, err := s.outcomeOf(ctx, t, in.Run)
	if err != nil {
		return api.Run{}, err
	}
	if o.State.Finished() && o.Counts.Pending > 0 { // outcomes come after the end, too
		now, err := attend(ctx, s, t, func(ctx context.Context) (redrive.Outcome, error) {
			return s.redriver.Status(ctx, in.Topic.Topic, in.Run)
		})
		if err == nil {
			o = now
		}
	}
	return s.runAs(t, &o), nil
}

// outcomeOf returns what is known of a run. A run that another server has just begun is looked up.
func (s *Server) outcomeOf(ctx context.Context, t *watch.Topic, id string) (redrive.Outcome, error) {
	for _, o := range t.Known() {
		if o.ID == id {
			return o, nil
		}
	}
	if l := s.runner.of(t.DeadLetterTopic.Topic, id, nil); l != nil {
		o, _, _ := l.get()
		return o, nil
	}
	o, err := attend(ctx, s, t, func(ctx context.Context) (redrive.Outcome, error) {
		return s.redriver.Progress(ctx, t.DeadLetterTopic.Topic, id)
	})
	if err != nil {
		return o, err
	}
	t.Saw(o)
	return o, nil
}

// runAs returns a run as the API shows it. What this process knows of a run that it owns is newer
// than the ledger.
func (s *Server) runAs(t *watch.Topic, o *redrive.Outcome) api.Run {
	var notices []string
	here := false
	if l := s.runner.of(t.DeadLetterTopic.Topic, o.ID, o); l != nil {
		last, said, ended := l.get()
		if watch.Newer(&last, o) {
			o = &last
		}
		notices, here = said, !ended
	}
	c, waiting := o.Counts, o.Waiting
	if why := s.runner.hindrance(t.DeadLetterTopic.Topic, o.ID); why != "" && !here && !o.State.Finished() {
		waiting = why
	}
	notices = slices.Clone(notices) // errors of brokers and of edits may quote letters
	for i := range notices {
		notices[i] = failure.Outside(s.redact, notices[i])
	}
	return api.Run{
		Topic: o.Topic, ID: o.ID, State: string(o.State), Waiting: failure.Outside(s.redact, waiting), Cause: failure.Outside(s.redact, o.Cause), By: o.By, Why: s.redact.Text(o.Why), Owner: o.Owner, Claim: o.Claim, Here: here,
		Silent: !here && t.Silent(o), Started: o.Started.UTC(), Heartbeat: o.Heartbeat.UTC(), Stopped: timeOr(o.Stopped), Ended: timeOr(o.Ended), WindowEnds: timeOr(o.WindowEnds),
		Pace: api.Pace{
			Rate: o.Pace.Rate, Burst: o.Pace.Burst, Canary: o.Pace.Canary, Tolerate: o.Pace.Tolerate, TolerateShare: o.Pace.TolerateShare,
			RampMs: o.Pace.Ramp.Milliseconds(), WindowMs: o.Pace.Window.Milliseconds(), MaxLag: o.Pace.MaxLag,
		},
		Rate: o.RateAt(o.Heartbeat), Counts: api.Counts(c), Notices: notices,
	}
}

// abortRun ends a run, wherever its process is.
func (s *Server) abortRun(ctx context.Context, in *request.Abort) (api.Run, error) {
	name := in.Topic.Topic
	why, err := reasonOf(in.Body.Why, false)
	if err != nil {
		return api.Run{}, err
	}
	t, err := s.topicFor(ctx, name, access.Operator)
	if err != nil {
		return api.Run{}, err
	}
	if err := s.redriver.Abort(ctx, name, in.Run.Run, redrive.AbortOptions{By: access.From(ctx).Name, Why: why}); err != nil {
		return api.Run{}, s.problemOn(ctx, t, err)
	}
	o, err := s.redriver.Progress(ctx, name, in.Run.Run)
	if err != nil {
		return api.Run{}, problem(failure.KindOf(err), "the run was aborted, but its numbers cannot be read: %s", failure.Text(err))
	}
	t.Saw(o)
	return s.runAs(t, &o), nil
}

// resumeRun continues a run here.
func (s *Server) resumeRun(ctx context.Context, in *request.Resume) (api.Run, error) {
	t, err := s.topicFor(ctx, in.Topic.Topic, access.Operator)
	if err != nil {
		return api.Run{}, err
	}
	condition := redrive.IfSilent()
	if in.Body.Claim != "" {
		condition = redrive.IfClaim(in.Body.Claim)
	}
	id := access.From(ctx)
	read, err := s.outcomeOf(ctx, t, in.Run.Run)
	if err != nil {
		return api.Run{}, err
	}
	// As getRun shows it: what was read of the ledger may be older than the end of a run of this
	// process.
	if before := s.runAs(t, &read); redrive.State(before.State).Finished() {
		return api.Run{}, problem(api.RunHeld, "run %s/%s is %s: a run that has ended is not resumed; begin a new one", in.Topic.Topic, in.Run.Run, before.State)
	}
	o, err := s.runner.launch(in.Topic.Topic, func(ctx context.Context, on func(redrive.Event)) (redrive.Outcome, error) {
		return s.redriver.Resume(ctx, in.Topic.Topic, in.Run.Run, redrive.RunOptions{By: id.Name, Pace: paceOf(&in.Body.Pace), On: on}, condition)
	})
	if err != nil {
		return api.Run{}, s.problemOn(ctx, t, err)
	}
	if _, noted := t.RunNotes()[o.ID]; !noted {
		if err := s.noteRun(ctx, t, o.ID, &watch.RunNote{V: 1, By: id.Name, At: time.Now().UTC()}); err != nil {
			s.log.Warn("siding: a resumed run could not be noted in the ledger: no other server goes on with it by itself", "topic", o.Topic, "run", o.ID, "error", err)
		}
	}
	return s.runAs(t, &o), nil
}

// adoptEvery is how often a server tries to resume a run of another one that ended.
const adoptEvery = 10 * time.Second

// adoptRuns goes on with the runs on topics that this server owns, if a server began them and no
// process owns them any more.
func (s *Server) adoptRuns(rules []rule.Rule, running *sync.WaitGroup) {
	for _, t := range s.cluster.Owned() {
		for _, o := range t.Known() {
			if !t.Silent(&o) || s.runner.of(o.Topic, o.ID, &o) != nil {
				continue
			}
			note, ours := t.RunNotes()[o.ID]
			if name, ofRule := strings.CutPrefix(o.By, watch.RulePrefix); ofRule && !ours {
				// The rule itself goes on with its runs, unless it has left the file. On a
				// manual-only topic an operator does.
				left := !slices.ContainsFunc(rules, func(r rule.Rule) bool { return r.Name == name && r.Covers(t.DeadLetterTopic.Topic) })
				ours = left && !t.Settings.ManualOnly && slices.ContainsFunc(t.Decisions(name), func(d watch.Decision) bool { return d.Run == o.ID })
				note.By = o.By
			}
			if !ours || !t.Adopting.CompareAndSwap(false, true) {
				continue
			}
			running.Go(func() {
				ctx, err := s.runner.running()
				if err != nil {
					return
				}
				_, err = s.runner.launch(o.Topic, func(ctx context.Context, on func(redrive.Event)) (redrive.Outcome, error) {
					return s.redriver.Resume(ctx, o.Topic, o.ID, redrive.RunOptions{By: note.By, On: on}, redrive.IfSilent())
				})
				if refused, ok := errors.AsType[*redrive.RefusedError](err); err != nil && ctx.Err() == nil && (!ok || refused.Reason != redrive.RefusedOwned) && s.runner.hinder(o.Topic, o.ID, err) {
					s.log.Warn("siding: a run of a server that ended could not be resumed", "topic", o.Topic, "run", o.ID, "error", err)
				}
				select {
				case <-ctx.Done():
				case <-time.After(adoptEvery):
				}
				t.Adopting.Store(false)
			})
		}
	}
}
