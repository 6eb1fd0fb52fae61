package operate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/request"
	"github.com/sidingkafka/siding/serve/internal/rule"
	"github.com/sidingkafka/siding/serve/internal/watch"
)

// ListRules returns the rules, with their states on the topics that the sender may see.
func ListRules(ctx context.Context, d *Desk, who *access.Identity, _ *request.Nothing) ([]api.Rule, error) {
	all := []api.Rule{}
	if d.cfg.Rules == nil {
		return all, nil
	}
	topics, now := topicsFor(d, who, access.Viewer), time.Now()
	everywhere := who.On("") >= access.Viewer
	for _, r := range d.cfg.Rules.Get() {
		is := api.Rule{
			Name: r.Name, Topics: r.Topics, Classes: Listed(r.Filter.Class), Groups: Listed(r.Filter.Group), Filter: shown(d, r.Filter), CoolDownMs: r.CoolDown.Milliseconds(), DelayMs: r.Delay.Milliseconds(), Times: Listed(r.Times), Zone: r.ZoneName(),
			Rate: r.Rate, WindowMs: r.Window.Milliseconds(), MaxReplays: r.MaxReplays, WaitMs: r.Wait.Milliseconds(), MaxWaitMs: r.MaxWait.Milliseconds(), On: []api.RuleOnTopic{},
		}
		for _, t := range topics {
			if r.Covers(t.DeadLetterTopic.Topic) {
				is.On = append(is.On, ruleOn(d, t, &r, now))
			}
		}
		if len(is.On) > 0 || everywhere {
			all = append(all, is)
		}
	}
	return all, nil
}

// shown returns a rule's filter as people may see it: what it asks for may be hidden in letters.
func shown(d *Desk, f api.Filter) api.Filter {
	hide := func(all []string) (shown []string) {
		for _, text := range all {
			shown = append(shown, d.cfg.Redact.Text(text))
		}
		return shown
	}
	f.Key, f.Header, f.Where = hide(f.Key), hide(f.Header), d.cfg.Redact.Text(f.Where)
	return f
}

// ruleOn returns the state of a rule on a topic. What people wrote may quote letters.
func ruleOn(d *Desk, t *watch.Topic, r *rule.Rule, now time.Time) api.RuleOnTopic {
	j, err := watch.Judge(t, r, d.cfg.Cluster.Guards.Of(t.Source), now)
	is := api.RuleOnTopic{
		Topic: t.DeadLetterTopic.Topic, Open: j.State.IsOpen(), Cause: failure.Outside(d.cfg.Redact, j.State.Why), Would: "nothing", Why: failure.Outside(d.cfg.Redact, j.Why), Letters: j.Facts.Open,
	}
	if r.Reads(is.Topic) {
		is.Read, is.Problem = watch.Search(t, r, now).Progress()
	}
	if j.State.IsOpen() {
		is.Until = timeOr(j.State.Until)
	}
	if j.Paused != nil {
		is.Paused = &api.Paused{By: j.Paused.By, At: j.Paused.At, Why: d.cfg.Redact.Text(j.Paused.Why)}
	}
	switch {
	case err != nil:
		is.Why = failure.Outside(d.cfg.Redact, err.Error())
	case t.Index.Progress().Complete.IsZero():
		is.Why = "the topic is still being read"
	case j.Do == rule.Redrive:
		if is.Would = watch.DoRedrive; r.Reads(is.Topic) {
			is.Why += "; it reads first which of these letters fit"
		}
	case j.Do == rule.Canary:
		is.Would = watch.DoCanary
	}
	if failed := watch.LastError(t, r); failed != nil && is.Would != "nothing" {
		is.Why = failure.Outside(d.cfg.Redact, fmt.Sprintf("%s; the last try failed: %v", j.Why, failed))
	}
	return is
}

// ruleFor returns a rule and a topic that it is for.
func ruleFor(ctx context.Context, d *Desk, who *access.Identity, in *request.RuleOn, least access.Role) (*rule.Rule, *watch.Topic, error) {
	t, err := TopicFor(ctx, d, who, in.Topic.Topic, least)
	if err != nil {
		return nil, nil, err
	}
	if d.cfg.Rules != nil {
		for _, r := range d.cfg.Rules.Get() {
			if r.Name == in.Rule.Rule && r.Covers(t.DeadLetterTopic.Topic) {
				return &r, t, nil
			}
		}
	}
	return nil, nil, failure.NewProblem(api.NoRule, "there is no rule %q for %s", in.Rule.Rule, in.Topic.Topic)
}

// TryRule returns what a rule would do now. It changes nothing.
func TryRule(ctx context.Context, d *Desk, who *access.Identity, in *request.RuleOn) (api.RuleOnTopic, error) {
	r, t, err := ruleFor(ctx, d, who, in, access.Viewer)
	if err != nil {
		return api.RuleOnTopic{}, err
	}
	if err := freshen(ctx, d, t); err != nil {
		return api.RuleOnTopic{}, err
	}
	return ruleOn(d, t, r, time.Now()), nil
}

// PauseRule keeps a rule from beginning runs on a topic. A run that goes on is not touched.
func PauseRule(ctx context.Context, d *Desk, who *access.Identity, in *request.Pause) (api.RuleOnTopic, error) {
	return decideRule(ctx, d, who, in, watch.DoPause)
}

// ResumeRule withdraws that a rule was paused.
func ResumeRule(ctx context.Context, d *Desk, who *access.Identity, in *request.Pause) (api.RuleOnTopic, error) {
	return decideRule(ctx, d, who, in, watch.DoResume)
}

func decideRule(ctx context.Context, d *Desk, who *access.Identity, in *request.Pause, do string) (api.RuleOnTopic, error) {
	why, err := reasonOf(in.Body.Why, false)
	if err != nil {
		return api.RuleOnTopic{}, err
	}
	r, t, err := ruleFor(ctx, d, who, &in.RuleOn, access.Admin)
	if err != nil {
		return api.RuleOnTopic{}, err
	}
	if err := freshen(ctx, d, t); err != nil {
		return api.RuleOnTopic{}, err
	}
	made := watch.Decision{V: 1, At: time.Now().UTC(), Do: do, By: who.Name, Why: why}
	// The last one counts, whatever the clocks of the servers say that wrote those before.
	if all := watch.Decisions(t, r.Name); len(all) > 0 && !made.At.After(all[0].At) {
		made.At = all[0].At.Add(time.Millisecond)
	}
	if err := Decided(ctx, d, t, r.Name, &made); err != nil {
		return api.RuleOnTopic{}, problemOn(ctx, d, t, err)
	}
	if err := t.Index.Refresh(ctx); err != nil {
		return api.RuleOnTopic{}, failure.NewProblem(failure.KindOf(err), "rule %s is %s on %s, but its state cannot be read: %s", r.Name, do, in.Topic.Topic, failure.Text(err))
	}
	return ruleOn(d, t, r, time.Now()), nil
}

// RuleHistory returns what a rule did, and who paused and resumed it, the newest first.
func RuleHistory(ctx context.Context, d *Desk, who *access.Identity, in *request.History) ([]api.RuleEvent, error) {
	all := []api.RuleEvent{}
	for _, t := range topicsFor(d, who, access.Viewer) {
		for _, did := range watch.Decisions(t, in.Rule.Rule) {
			all = append(all, api.RuleEvent{Topic: t.DeadLetterTopic.Topic, At: did.At, What: did.Do, By: did.By, Why: failure.Outside(d.cfg.Redact, did.Why), Run: did.Run, End: failure.Outside(d.cfg.Redact, did.End)})
		}
	}
	slices.SortStableFunc(all, func(a, b api.RuleEvent) int { return b.At.Compare(a.At) })
	if in.Limit > 0 {
		all = all[:min(in.Limit, len(all))]
	}
	return all, nil
}

// Decided writes a decision to the ledger, and deletes those that are too old.
func Decided(ctx context.Context, d *Desk, t *watch.Topic, rule string, made *watch.Decision) error {
	if all := watch.Decisions(t, rule); len(all) > watch.MostDecisions {
		inForce := watch.Standing(all)
		for i := range all[watch.MostDecisions:] {
			if old := &all[watch.MostDecisions+i]; old != inForce {
				_ = d.Runner.WriteNote(ctx, t, old.Name(rule), nil) // the next one tries again
			}
		}
	}
	return d.Runner.WriteNote(ctx, t, made.Name(rule), made)
}

// RuleList returns the rules; none if no file of rules is configured.
func (d *Desk) RuleList() []rule.Rule {
	if d.cfg.Rules == nil {
		return nil
	}
	return d.cfg.Rules.Get()
}

// HasRules reports whether a file of rules is configured.
func (d *Desk) HasRules() bool { return d.cfg.Rules != nil }
