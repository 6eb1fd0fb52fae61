package apply

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/internal/operate"
	"github.com/sidingkafka/siding/serve/internal/rule"
	"github.com/sidingkafka/siding/serve/internal/selection"
	"github.com/sidingkafka/siding/serve/internal/watch"
)

// RulesConfig is what [Rules] depend on.
type RulesConfig struct {
	Kafka    []kgo.Opt
	Cluster  *watch.Cluster
	Desk     *operate.Desk
	Redriver *redrive.Redriver
	View     selection.View
	Log      *slog.Logger
}

// Rules apply the rules to the topics that a server owns, and go on with runs of servers that
// ended.
type Rules struct{ cfg RulesConfig }

// NewRules returns what applies the rules.
func NewRules(cfg RulesConfig) *Rules { return &Rules{cfg} }

// settle records the ends of a rule's runs that no server has recorded, and which decisions have no
// run.
func (a *Rules) settle(ctx context.Context, t *watch.Topic, r *rule.Rule, now time.Time) (any bool, err error) {
	state, err := watch.RuleState(t, r.Name, now)
	if err != nil {
		return false, err
	}
	state, ended := watch.Settled(t, r, state, now)
	ends := map[string]string{}
	for i := range ended {
		ends[ended[i].ID] = endOf(ended[i].Cause)
	}
	known := t.Known()
	for _, d := range watch.Decisions(t, r.Name) {
		// A suspended server may begin the run still: then settled has its end.
		if d.Run != "" && d.End == "" && !slices.ContainsFunc(known, func(o redrive.Outcome) bool { return o.ID == d.Run }) {
			ends[d.Run] = watch.NotBegun + "its server ended"
		}
	}
	if len(ends) == 0 {
		return false, nil
	}
	if len(ended) > 0 {
		if err := a.cfg.Desk.Runner.WriteNote(ctx, t, watch.RuleStateNote(r.Name), state); err != nil {
			return true, err
		}
	}
	for _, d := range watch.Decisions(t, r.Name) {
		if end := ends[d.Run]; end != "" {
			d.End = end
			if err := operate.Decided(ctx, a.cfg.Desk, t, r.Name, &d); err != nil {
				return true, err
			}
		}
	}
	return true, t.Index.Refresh(ctx)
}

// endOf says how a run ended; cause is why it aborted.
func endOf(cause string) string {
	if cause == "" {
		return "done"
	}
	return "aborted: " + cause
}

// applyRule begins a run if a rule wants one, and returns when it has ended. After an error the
// rule rests on the topic: longer each time.
func (a *Rules) applyRule(ctx context.Context, t *watch.Topic, r *rule.Rule) error {
	if t.HasLedger() != nil {
		return nil // the log has it
	}
	now := time.Now()
	if paused := watch.Paused(t, r.Name); paused != nil && paused.By == watch.RuleName(r) {
		return nil // it is unknown what came home, so the rule does not go on with runs either
	}
	if any, err := a.settle(ctx, t, r, now); any || err != nil {
		return err // the next round decides
	}
	j, err := watch.Judge(t, r, a.cfg.Cluster.Guards.Of(t.Source), now)
	if err != nil {
		return err
	}
	left := watch.LeftRun(t, watch.RuleName(r))
	if left != nil && j.Facts.Manual || left == nil && j.Do == rule.Nothing {
		return nil
	}
	rests := watch.Resting(t, r, now)
	switch without := watch.Leaving(j.Filter, rests.Groups); {
	case rests.Wait > 0 && (left != nil || watch.MayFit(t, r, &without, now) <= rests.Homeless):
		return nil
	case left != nil:
		err = a.goOn(ctx, t, r, left)
	default:
		if r.Reads(t.DeadLetterTopic.Topic) {
			var found bool
			if found, err = watch.Search(t, r, now).Find(ctx, t.Index, &without, t.DeadLetterTopic.Topic, a.cfg.Kafka...); err == nil && !found {
				return nil // the next round reads those that are left
			}
		}
		if err == nil {
			err = a.beginRun(ctx, t, r, &j, &rests)
		}
	}
	if ctx.Err() == nil {
		watch.RestAfter(t, r, j.Filter, time.Now(), err)
	}
	return err
}

// holdRules writes to a ledger that is newer than letters of its topic that it is, and that the
// rules wait for an operator: a server that begins later cannot see it. Each server that saw it
// writes the former, and the owner of the topic the latter. What fails is tried again in the next
// round, whatever else rests or goes on meanwhile.
func (a *Rules) holdRules(ctx context.Context, t *watch.Topic, rules []rule.Rule, isOwner bool, running *sync.WaitGroup) {
	at, noted := watch.Forgotten(t)
	var waiting []*watch.Decision
	var names []string
	for i := range rules {
		if d := watch.Forgot(t, rules[i].Name); d != nil && isOwner && rules[i].Covers(t.DeadLetterTopic.Topic) {
			waiting, names = append(waiting, d), append(names, rules[i].Name)
		}
	}
	if at.IsZero() || noted && len(waiting) == 0 || t.HasLedger() != nil || t.Index.Progress().Read.IsZero() || !t.Holding.CompareAndSwap(false, true) {
		return
	}
	running.Go(func() {
		defer t.Holding.Store(false)
		var err error
		if !noted {
			err = a.cfg.Desk.Runner.WriteNote(ctx, t, watch.ForgottenNote, watch.Forgetting{V: 1, At: at})
		}
		for i := 0; i < len(waiting) && err == nil; i++ {
			err = operate.Decided(ctx, a.cfg.Desk, t, names[i], waiting[i])
		}
		if err = errors.Join(err, t.Index.Refresh(ctx)); err != nil && ctx.Err() == nil && t.HeldBy != err.Error() {
			a.cfg.Log.Warn("siding: the ledger cannot keep yet that rules wait for an operator; a server that begins meanwhile would redrive what came home", "topic", t.DeadLetterTopic.Topic, "error", err)
		}
		if t.HeldBy = ""; err != nil {
			t.HeldBy = err.Error()
			return
		}
		a.cfg.Log.Warn("siding: rules wait until an operator resumes them", "rules", names, "topic", t.DeadLetterTopic.Topic, "why", watch.ForgotWhy)
	})
}

// beginRun begins a run as a rule decided, and returns when it has ended. It leaves letters out
// that cannot come home to their groups: those that rest, and those of which it learns.
func (a *Rules) beginRun(ctx context.Context, t *watch.Topic, r *rule.Rule, j *watch.Judged, rests *watch.Rest) error {
	a.cfg.Desk.Outcomes.Record(ctx, t.DeadLetterTopic.Topic)
	homeless, without := rests.Err, rests.Groups
	for {
		err := a.beginRunOf(ctx, t, r, j, watch.Leaving(r.Whole(t.DeadLetterTopic.Topic, j.Filter, a.cfg.View), without))
		refused, ok := errors.AsType[*redrive.RefusedError](err)
		switch {
		case ok && len(refused.Groups) > 0:
			homeless, without = err, append(slices.Clone(without), refused.Groups...)
		case ok && refused.Reason == redrive.RefusedNothing && homeless != nil:
			return homeless // there are no others
		default:
			return err
		}
	}
}

// beginRunOf begins a run of letters that a filter selects.
func (a *Rules) beginRunOf(ctx context.Context, t *watch.Topic, r *rule.Rule, j *watch.Judged, f dlq.Filter) error {
	d := watch.Decision{V: 1, At: time.Now().UTC(), Do: watch.DoRedrive, Why: j.Why}
	selection := redrive.Selection{Topic: t.DeadLetterTopic.Topic, Filter: f, MaxRedrives: r.MaxReplays}
	if j.Do == rule.Canary {
		d.Do = watch.DoCanary
		at, err := watch.Canary(ctx, t, r, &f, a.cfg.Kafka)
		if err != nil {
			return err
		}
		selection.Filter.Ranges = []dlq.Range{at}
	}
	plan, err := a.cfg.Redriver.Plan(ctx, selection)
	if err != nil {
		return err
	}
	d.Run = plan.ID
	if err := operate.Decided(ctx, a.cfg.Desk, t, r.Name, &d); err != nil {
		return err // what is not in the ledger is not done
	}
	return a.runRule(ctx, t, r, &d, func(on func(redrive.Event)) (redrive.Outcome, error) {
		return a.cfg.Redriver.Run(ctx, plan, redrive.RunOptions{
			By: watch.RuleName(r), Why: j.Why, Pace: redrive.Pace{Rate: r.Rate, Window: r.Window}, On: on,
			Veto: func(ctx context.Context) error { return a.stands(ctx, t, r, j.Do) },
		})
	})
}

// errForbidden reports that a rule would not decide any more as it did.
var errForbidden = errors.New("the rule would not begin it any more")

// stands checks a decision of a rule while its run is being claimed. This server may have been
// suspended for hours since it decided. So it asks the rule again, with all that the ledger has by
// now: that an operator paused the rule, or aborted its run, that another server owns the topic and
// has opened the circuit. The file may have another rule, or none. And groups may hold the source.
func (a *Rules) stands(ctx context.Context, t *watch.Topic, r *rule.Rule, do rule.Action) error {
	if err := t.Reread(ctx); err != nil {
		return err
	}
	if !slices.Contains(a.cfg.Cluster.Owned(), t) {
		return fmt.Errorf("%w: another server owns the topic", errForbidden)
	}
	rules := a.cfg.Desk.RuleList()
	i := slices.IndexFunc(rules, func(is rule.Rule) bool { return is.Name == r.Name && is.Covers(t.DeadLetterTopic.Topic) })
	if i < 0 {
		return fmt.Errorf("%w: it left the file of rules", errForbidden)
	}
	if !reflect.DeepEqual(rules[i].Filter, r.Filter) {
		return fmt.Errorf("%w: its filter has changed", errForbidden)
	}
	a.cfg.Cluster.Guards.Look(ctx)
	j, err := watch.Judge(t, &rules[i], a.cfg.Cluster.Guards.Of(t.Source), time.Now())
	switch {
	case err != nil:
		return err
	case j.Do == rule.Nothing:
		return fmt.Errorf("%w: %s", errForbidden, j.Why)
	case j.Do != do:
		return fmt.Errorf("%w: by now it does something else, since %s", errForbidden, j.Why)
	}
	return nil
}

// goOn continues a rule's run whose server ended.
func (a *Rules) goOn(ctx context.Context, t *watch.Topic, r *rule.Rule, left *redrive.Outcome) error {
	d := watch.Decision{V: 1, At: left.Started.UTC(), Do: watch.DoRedrive, Why: left.Why, Run: left.ID}
	all := watch.Decisions(t, r.Name)
	if i := slices.IndexFunc(all, func(is watch.Decision) bool { return is.Run == left.ID }); i >= 0 {
		d = all[i]
	} else if err := operate.Decided(ctx, a.cfg.Desk, t, r.Name, &d); err != nil {
		return err
	}
	err := a.runRule(ctx, t, r, &d, func(on func(redrive.Event)) (redrive.Outcome, error) {
		return a.cfg.Redriver.Resume(ctx, left.Topic, left.ID, redrive.RunOptions{By: watch.RuleName(r), On: on}, redrive.IfSilent())
	})
	if refused, ok := errors.AsType[*redrive.RefusedError](err); ok && refused.Reason == redrive.RefusedOwned {
		return nil // another server was faster
	}
	if err != nil && ctx.Err() == nil {
		a.cfg.Desk.Runner.Block(left.Topic, left.ID, err)
	}
	return err
}

// runRule runs a redrive of a rule, and records how it ended.
func (a *Rules) runRule(ctx context.Context, t *watch.Topic, r *rule.Rule, d *watch.Decision, run func(func(redrive.Event)) (redrive.Outcome, error)) error {
	f := a.cfg.Desk.Runner.Follow(t.DeadLetterTopic.Topic)
	o, err := run(f.Observe)
	f.End(ctx, o, err)
	if ctx.Err() != nil {
		return nil // another server goes on with the run
	}
	switch _, failed := errors.AsType[*redrive.FailedAgainError](err); {
	case err == nil || failed:
	case f.Run == nil && d.End == "": // it was not claimed
		d.End = watch.NotBegun + err.Error()
		if errors.Is(err, errForbidden) {
			err = nil
		}
		return errors.Join(err, operate.Decided(ctx, a.cfg.Desk, t, r.Name, d), t.Index.Refresh(ctx))
	default:
		return err // settle records the end of a run that another process has
	}
	// This server may have been suspended, and another one has settled the run, and decided anew.
	if err := t.Reread(ctx); err != nil || !slices.Contains(a.cfg.Cluster.Owned(), t) {
		return err
	}
	_, err = a.settle(ctx, t, r, time.Now())
	return err
}

// Apply applies the rules to topics, one at a time to each topic.
func (a *Rules) Apply(ctx context.Context, topics []*watch.Topic, running *sync.WaitGroup) {
	rules := a.cfg.Desk.RuleList()
	if a.cfg.Desk.HasRules() {
		for _, t := range a.cfg.Cluster.All() {
			a.holdRules(ctx, t, rules, slices.Contains(topics, t), running)
		}
	}
	for _, t := range topics {
		if len(rules) == 0 || t.Index.Progress().Complete.IsZero() || !t.Ruled.CompareAndSwap(false, true) {
			continue
		}
		running.Go(func() {
			defer t.Ruled.Store(false)
			for i := range rules {
				if !rules[i].Covers(t.DeadLetterTopic.Topic) {
					continue
				}
				if err := a.applyRule(ctx, t, &rules[i]); err != nil && ctx.Err() == nil {
					a.cfg.Log.Warn("siding: a rule could not be applied", "rule", rules[i].Name, "topic", t.DeadLetterTopic.Topic, "error", err)
				}
			}
		})
	}
}
