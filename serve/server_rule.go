package serve

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

// listRules returns the rules, with their states on the topics that the sender may see.
func (s *Server) listRules(ctx context.Context, _ *request.Nothing) ([]api.Rule, error) {
	all := []api.Rule{}
	if s.rules == nil {
		return all, nil
	}
	topics, now := s.topicsFor(ctx, access.Viewer), time.Now()
	everywhere := access.From(ctx).On("") >= access.Viewer
	for _, r := range s.rules.Get() {
		is := api.Rule{
			Name: r.Name, Topics: r.Topics, Classes: listed(r.Filter.Class), Groups: listed(r.Filter.Group), Filter: s.shown(r.Filter), CoolDownMs: r.CoolDown.Milliseconds(), DelayMs: r.Delay.Milliseconds(), Times: listed(r.Times), Zone: r.ZoneName(),
			Rate: r.Rate, WindowMs: r.Window.Milliseconds(), MaxReplays: r.MaxReplays, WaitMs: r.Wait.Milliseconds(), MaxWaitMs: r.MaxWait.Milliseconds(), On: []api.RuleOnTopic{},
		}
		for _, t := range topics {
			if r.Covers(t.DeadLetterTopic.Topic) {
				is.On = append(is.On, s.ruleOn(t, &r, now))
			}
		}
		if len(is.On) > 0 || everywhere {
			all = append(all, is)
		}
	}
	return all, nil
}

// shown returns a rule's filter as people may see it: what it asks for may be hidden in letters.
func (s *Server) shown(f api.Filter) api.Filter {
	hide := func(all []string) (shown []string) {
		for _, text := range all {
			shown = append(shown, s.redact.Text(text))
		}
		return shown
	}
	f.Key, f.Header, f.Where = hide(f.Key), hide(f.Header), s.redact.Text(f.Where)
	return f
}

// ruleOn returns the state of a rule on a topic. What people wrote may quote letters.
func (s *Server) ruleOn(t *watch.Topic, r *rule.Rule, now time.Time) api.RuleOnTopic {
	j, err := t.Judge(r, s.cluster.Guards.Of(t.Source), now)
	is := api.RuleOnTopic{
		Topic: t.DeadLetterTopic.Topic, Open: j.State.IsOpen(), Cause: failure.Outside(s.redact, j.State.Why), Would: "nothing", Why: failure.Outside(s.redact, j.Why), Letters: j.Facts.Open,
	}
	if r.Reads(is.Topic) {
		is.Read, is.Problem = t.Search(r, now).Progress()
	}
	if j.State.IsOpen() {
		is.Until = timeOr(j.State.Until)
	}
	if j.Paused != nil {
		is.Paused = &api.Paused{By: j.Paused.By, At: j.Paused.At, Why: s.redact.Text(j.Paused.Why)}
	}
	switch {
	case err != nil:
		is.Why = failure.Outside(s.redact, err.Error())
	case t.Book.Progress().Complete.IsZero():
		is.Why = "the topic is still being read"
	case j.Do == rule.Redrive:
		if is.Would = watch.DoRedrive; r.Reads(is.Topic) {
			is.Why += "; it reads first which of these letters fit"
		}
	case j.Do == rule.Canary:
		is.Would = watch.DoCanary
	}
	if failed := t.LastError(r); failed != nil && is.Would != "nothing" {
		is.Why = failure.Outside(s.redact, fmt.Sprintf("%s; the last try failed: %v", j.Why, failed))
	}
	return is
}

// ruleFor returns a rule and a topic that it is for.
func (s *Server) ruleFor(ctx context.Context, in *request.RuleOn, least access.Role) (*rule.Rule, *watch.Topic, error) {
	t, err := s.topicFor(ctx, in.Topic.Topic, least)
	if err != nil {
		return nil, nil, err
	}
	if s.rules != nil {
		for _, r := range s.rules.Get() {
			if r.Name == in.Rule.Rule && r.Covers(t.DeadLetterTopic.Topic) {
				return &r, t, nil
			}
		}
	}
	return nil, nil, problem(api.NoRule, "there is no rule %q for %s", in.Rule.Rule, in.Topic.Topic)
}

// tryRule returns what a rule would do now. It changes nothing.
func (s *Server) tryRule(ctx context.Context, in *request.RuleOn) (api.RuleOnTopic, error) {
	r, t, err := s.ruleFor(ctx, in, access.Viewer)
	if err != nil {
		return api.RuleOnTopic{}, err
	}
	if err := freshen(ctx, s, t); err != nil {
		return api.RuleOnTopic{}, err
	}
	return s.ruleOn(t, r, time.Now()), nil
}

// pauseRule keeps a rule from beginning runs on a topic. A run that goes on is not touched.
func (s *Server) pauseRule(ctx context.Context, in *request.Pause) (api.RuleOnTopic, error) {
	return s.decideRule(ctx, in, watch.DoPause)
}

// resumeRule withdraws that a rule was paused.
func (s *Server) resumeRule(ctx context.Context, in *request.Pause) (api.RuleOnTopic, error) {
	return s.decideRule(ctx, in, watch.DoResume)
}

func (s *Server) decideRule(ctx context.Context, in *request.Pause, do string) (api.RuleOnTopic, error) {
	why, err := reasonOf(in.Body.Why, false)
	if err != nil {
		return api.RuleOnTopic{}, err
	}
	r, t, err := s.ruleFor(ctx, &in.RuleOn, access.Admin)
	if err != nil {
		return api.RuleOnTopic{}, err
	}
	if err := freshen(ctx, s, t); err != nil {
		return api.RuleOnTopic{}, err
	}
	d := watch.Decision{V: 1, At: time.Now().UTC(), Do: do, By: access.From(ctx).Name, Why: why}
	// The last one counts, whatever the clocks of the servers say that wrote those before.
	if all := t.Decisions(r.Name); len(all) > 0 && !d.At.After(all[0].At) {
		d.At = all[0].At.Add(time.Millisecond)
	}
	if err := s.decided(ctx, t, r.Name, &d); err != nil {
		return api.RuleOnTopic{}, s.problemOn(ctx, t, err)
	}
	if err := t.Book.Refresh(ctx); err != nil {
		return api.RuleOnTopic{}, problem(failure.KindOf(err), "rule %s is %s on %s, but its state cannot be read: %s", r.Name, do, in.Topic.Topic, failure.Text(err))
	}
	return s.ruleOn(t, r, time.Now()), nil
}

// ruleHistory returns what a rule did, and who paused and resumed it, the newest first.
func (s *Server) ruleHistory(ctx context.Context, in *request.History) ([]api.RuleEvent, error) {
	all := []api.RuleEvent{}
	for _, t := range s.topicsFor(ctx, access.Viewer) {
		for _, d := range t.Decisions(in.Rule.Rule) {
			all = append(all, api.RuleEvent{Topic: t.DeadLetterTopic.Topic, At: d.At, What: d.Do, By: d.By, Why: failure.Outside(s.redact, d.Why), Run: d.Run, End: failure.Outside(s.redact, d.End)})
		}
	}
	slices.SortStableFunc(all, func(a, b api.RuleEvent) int { return b.At.Compare(a.At) })
	if in.Limit > 0 {
		all = all[:min(in.Limit, len(all))]
	}
	return all, nil
}
