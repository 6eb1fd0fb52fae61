package serve

import (
	"context"
	"errors"
	"path"
	"sync"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/internal/rule"
)

// ruleName is how a rule is called where a ledger names who redrove a letter.
func ruleName(r *Rule) string { return "rule " + r.Name }

// judged is what a rule does about a topic at a moment, and why.
type judged struct {
	state  rule.State
	filter dlq.Filter
	facts  rule.Facts
	paused *decision
	do     rule.Action
	why    string
}

// judge asks a rule what it does about a topic.
func (t *topic) judge(r *Rule, now time.Time) (j judged, err error) {
	if j.state, err = t.ruleState(r.Name); err != nil {
		return j, err // what nobody can read is no permission
	}
	j.paused = paused(t.decisions(r.Name))
	j.filter = dlq.Filter{Classes: r.Classes, Groups: r.Groups}
	j.facts = rule.Facts{
		Open: t.book.Select(&j.filter).Open, LastFailed: t.book.LastFailed(&dlq.Filter{Classes: r.Classes}), Unfinished: t.unfinished(),
		Manual: t.config.ManualOnly, Paused: j.paused != nil,
	}
	j.do, j.why = r.decides.Decide(now.In(r.zone), &j.state, j.facts)
	return j, nil
}

// applyRule begins a run if a rule wants one, and returns when it has ended.
func (s *Server) applyRule(ctx context.Context, t *topic, r *Rule) error {
	now, name := time.Now(), t.DeadLetterTopic.Topic
	j, err := t.judge(r, now)
	if err != nil {
		return err
	}
	if left := t.leftRun(ruleName(r)); left != nil {
		return s.goOn(ctx, t, r, &j.state, left)
	}
	if j.do == rule.Nothing {
		return nil
	}
	d := decision{V: 1, At: now.UTC(), Do: doRedrive, Why: j.why}
	selection := redrive.Selection{Topic: name, Filter: j.filter, MaxRedrives: r.MaxReplays}
	if j.do == rule.Canary {
		d.Do = doCanary
		rows, _, _ := t.book.Page(&j.filter, false, dlq.Cursor{}, 1)
		if len(rows) == 0 {
			return nil
		}
		selection.Filter.Ranges = []dlq.Range{dlq.At(rows[0].Partition, rows[0].Offset)}
	}
	plan, err := s.redriver.Plan(ctx, selection)
	if err != nil {
		return err
	}
	d.Run = plan.ID
	if err := s.decided(ctx, t, r.Name, &d); err != nil {
		return err // what is not in the ledger is not done
	}
	return s.runRule(ctx, t, r, &j.state, &d, func(on func(redrive.Event)) (redrive.Outcome, error) {
		return s.redriver.Run(ctx, plan, redrive.RunOptions{By: ruleName(r), Why: j.why, Pace: redrive.Pace{Rate: r.Rate, Window: r.Window}, On: on})
	})
}

// leftRun returns the run of somebody that no process owns any more; nil if there is none.
func (t *topic) leftRun(by string) *redrive.Outcome {
	for _, o := range t.known() {
		if o.By == by && silent(&o) {
			return &o
		}
	}
	return nil
}

// goOn continues a rule's run whose server ended.
func (s *Server) goOn(ctx context.Context, t *topic, r *Rule, state *rule.State, left *redrive.Outcome) error {
	d := decision{V: 1, At: left.Started.UTC(), Do: doRedrive, Why: left.Why, Run: left.ID}
	for _, was := range t.decisions(r.Name) {
		if was.Run == left.ID {
			d = was
		}
	}
	err := s.runRule(ctx, t, r, state, &d, func(on func(redrive.Event)) (redrive.Outcome, error) {
		return s.redriver.Resume(ctx, left.Topic, left.ID, redrive.RunOptions{By: ruleName(r), On: on}, redrive.IfSilent())
	})
	if refused, ok := errors.AsType[*redrive.RefusedError](err); ok && refused.Reason == redrive.RefusedOwned {
		return nil // another server was faster
	}
	return err
}

// runRule runs a redrive of a rule, and notes how it ended.
func (s *Server) runRule(ctx context.Context, t *topic, r *Rule, state *rule.State, d *decision, run func(func(redrive.Event)) (redrive.Outcome, error)) error {
	f := s.runner.follow(t.DeadLetterTopic.Topic)
	o, err := run(f.see)
	f.end(ctx, o, err)
	if ctx.Err() != nil {
		return nil // another server goes on with the run
	}
	cause := ""
	switch failed, ok := errors.AsType[*redrive.FailedAgainError](err); {
	case ok:
		cause = failed.Cause
	case err != nil:
		return err
	}
	d.End = "done"
	if cause != "" {
		d.End = "aborted: " + cause
	}
	err = errors.Join(s.runner.note(ctx, t, ruleStateNote(r.Name), r.decides.Ended(time.Now(), *state, cause)), s.decided(ctx, t, r.Name, d))
	// The next decision is made with these notes, and with the outcomes of the run.
	return errors.Join(err, t.book.Refresh(ctx))
}

// decided writes a decision to the ledger, and deletes those that are too old.
func (s *Server) decided(ctx context.Context, t *topic, rule string, d *decision) error {
	if all := t.decisions(rule); len(all) > mostDecisions {
		inForce := paused(all)
		for i := range all[mostDecisions:] {
			if old := &all[mostDecisions+i]; inForce == nil || old.At != inForce.At {
				_ = s.runner.note(ctx, t, old.name(rule), nil) // the next one tries again
			}
		}
	}
	return s.runner.note(ctx, t, d.name(rule), d)
}

// applyRules applies the rules to topics, one at a time to each topic.
func (s *Server) applyRules(ctx context.Context, topics []*topic, running *sync.WaitGroup) {
	rules := s.ruleList()
	if len(rules) == 0 {
		return
	}
	for _, t := range topics {
		if t.book.Progress().Complete.IsZero() || !t.ruled.CompareAndSwap(false, true) {
			continue
		}
		running.Go(func() {
			defer t.ruled.Store(false)
			for i := range rules {
				if !rules[i].covers(t) {
					continue
				}
				if err := s.applyRule(ctx, t, &rules[i]); err != nil && ctx.Err() == nil {
					s.log.Warn("siding: a rule could not be applied", "rule", rules[i].Name, "topic", t.DeadLetterTopic.Topic, "error", err)
				}
			}
		})
	}
}

// covers reports whether a rule is for a topic.
func (r *Rule) covers(t *topic) bool {
	fits, _ := path.Match(r.Topics, t.DeadLetterTopic.Topic)
	return fits
}
