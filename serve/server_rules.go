package serve

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/held"
	"github.com/sidingkafka/siding/serve/internal/rule"
)

// rulePrefix and a rule's name are who redrove a letter, in ledgers.
const rulePrefix = "rule "

func ruleName(r *rule.Rule) string { return rulePrefix + r.Name }

// judged is what a rule does about a topic at a moment, and why.
type judged struct {
	state  rule.State
	filter dlq.Filter
	facts  rule.Facts
	paused *decision
	do     rule.Action
	why    string
}

// judge asks a rule what it does about a topic. guards are those of its source.
func (t *topic) judge(r *rule.Rule, guards []api.Guard, now time.Time) (j judged, err error) {
	if j.state, err = t.ruleState(r.Name, now); err == nil {
		err = t.unreliable()
	}
	if err != nil {
		return j, err // what nobody knows is no permission
	}
	j.state, _ = t.settled(r, j.state, now)
	j.paused = t.paused(r.Name)
	j.filter = r.Selects(t.DeadLetterTopic.Topic, now)
	last := t.lastFailed(r, now)
	j.facts = rule.Facts{
		Open: t.mayFit(r, &j.filter, now), LastFailed: last, Unfinished: t.unfinished(), Manual: t.config.manualOnly(), Paused: j.paused != nil,
	}
	for i := 0; i < len(guards) && j.facts.Held == ""; i++ {
		g := &guards[i]
		if of := among(j.filter, g.Group); t.mayFit(r, &of, now) > 0 {
			j.facts.Held = held.Says(g, t.Source)
		}
	}
	j.do, j.why = r.Decide(now, &j.state, j.facts)
	return j, nil
}

// lastFailed returns when a letter of a rule's classes failed last: when its service says so,
// unless that is yet to come, or when this server heard of it. The clock of the service may be
// wrong. What the server finds at its first look failed when its letter was written, by the clock
// of whoever sets the topic's timestamps, if that is later.
func (t *topic) lastFailed(r *rule.Rule, now time.Time) time.Time {
	f := dlq.Filter{Classes: r.Filter.Class}
	came := fmt.Sprint(t.book.Came(&f), " ", t.book.LastFailed(&f))
	f.Until = now
	last := t.book.LastFailed(&f)
	if !t.book.Progress().Complete.IsZero() {
		says := t.book.LastEntered(&dlq.Filter{Classes: r.Filter.Class})
		if says.Before(last) {
			says = last
		}
		if heard := t.hear("failure/"+r.Name, came, now, says); heard.After(last) {
			last = heard
		}
	}
	return last
}

// settled returns a state of a rule with the ends of its runs that no server has noted: an operator
// aborted the run, or the server ended with it. ends has these runs.
func (t *topic) settled(r *rule.Rule, state rule.State, now time.Time) (_ rule.State, ends []redrive.Outcome) {
	noted := map[string]bool{}
	for _, d := range t.decisions(r.Name) {
		noted[d.Run] = d.End != "" && !strings.HasPrefix(d.End, notBegun)
	}
	for _, o := range t.known() {
		if ended, decided := noted[o.ID]; !decided || ended || !o.State.Finished() {
			continue
		}
		ends = append(ends, o)
		switch {
		case state.Run == o.ID: // the state has it, and the decision has not
		case o.State == redrive.Aborted:
			state = r.Ended(t.hear("run/"+o.ID, o.Cause, now, o.Ended), state, o.Cause)
		default:
			state = r.Ended(now, state, "")
		}
		state.Run = o.ID
	}
	return state, ends
}

// settle notes the ends of a rule's runs that no server has noted, and which decisions have no run.
func (s *Server) settle(ctx context.Context, t *topic, r *rule.Rule, now time.Time) (any bool, err error) {
	state, err := t.ruleState(r.Name, now)
	if err != nil {
		return false, err
	}
	state, ended := t.settled(r, state, now)
	ends := map[string]string{}
	for i := range ended {
		ends[ended[i].ID] = endOf(ended[i].Cause)
	}
	known := t.known()
	for _, d := range t.decisions(r.Name) {
		// A suspended server may begin the run still: then settled has its end.
		if d.Run != "" && d.End == "" && !slices.ContainsFunc(known, func(o redrive.Outcome) bool { return o.ID == d.Run }) {
			ends[d.Run] = notBegun + "its server ended"
		}
	}
	if len(ends) == 0 {
		return false, nil
	}
	if len(ended) > 0 {
		if err := s.runner.note(ctx, t, ruleStateNote(r.Name), state); err != nil {
			return true, err
		}
	}
	for _, d := range t.decisions(r.Name) {
		if end := ends[d.Run]; end != "" {
			d.End = end
			if err := s.decided(ctx, t, r.Name, &d); err != nil {
				return true, err
			}
		}
	}
	return true, t.book.Refresh(ctx)
}

// notBegun begins the end of a decision whose run was not begun, with the reason behind it.
const notBegun = "not begun: "

// endOf says how a run ended; cause is why it aborted.
func endOf(cause string) string {
	if cause == "" {
		return "done"
	}
	return "aborted: " + cause
}

// applyRule begins a run if a rule wants one, and returns when it has ended. After an error the
// rule rests on the topic: longer each time.
func (s *Server) applyRule(ctx context.Context, t *topic, r *rule.Rule) error {
	if t.hasLedger() != nil {
		return nil // the log has it
	}
	now := time.Now()
	if paused := t.paused(r.Name); paused != nil && paused.By == ruleName(r) {
		return nil // nobody knows what came home, so the rule does not go on with runs either
	}
	if any, err := s.settle(ctx, t, r, now); any || err != nil {
		return err // the next round decides
	}
	j, err := t.judge(r, s.guards.Of(t.Source), now)
	if err != nil {
		return err
	}
	left := t.leftRun(ruleName(r))
	if left != nil && j.facts.Manual || left == nil && j.do == rule.Nothing {
		return nil
	}
	rests := t.resting(r, now)
	switch without := leaving(j.filter, rests.groups); {
	case rests.wait > 0 && (left != nil || t.mayFit(r, &without, now) <= rests.homeless):
		return nil
	case left != nil:
		err = s.goOn(ctx, t, r, left)
	default:
		if r.Reads(t.DeadLetterTopic.Topic) {
			var found bool
			if found, err = t.search(r, now).Find(ctx, t.book, &without, t.DeadLetterTopic.Topic, s.cfg.Kafka...); err == nil && !found {
				return nil // the next round reads those that are left
			}
		}
		if err == nil {
			err = s.beginRun(ctx, t, r, &j, &rests)
		}
	}
	if ctx.Err() == nil {
		t.rest(r, j.filter, time.Now(), err)
	}
	return err
}

// holdRules writes to a ledger that is newer than letters of its topic that it is, and that the
// rules wait for an operator: a server that begins later cannot see it. Each server that saw it
// writes the former, and the owner of the topic the latter. What fails is tried again in the next
// round, whatever else rests or goes on meanwhile.
func (s *Server) holdRules(ctx context.Context, t *topic, rules []rule.Rule, isOwner bool, running *sync.WaitGroup) {
	at, noted := t.forgotten()
	var waiting []*decision
	var names []string
	for i := range rules {
		if d := t.forgot(rules[i].Name); d != nil && isOwner && rules[i].Covers(t.DeadLetterTopic.Topic) {
			waiting, names = append(waiting, d), append(names, rules[i].Name)
		}
	}
	if at.IsZero() || noted && len(waiting) == 0 || t.hasLedger() != nil || t.book.Progress().Read.IsZero() || !t.holding.CompareAndSwap(false, true) {
		return
	}
	running.Go(func() {
		defer t.holding.Store(false)
		var err error
		if !noted {
			err = s.runner.note(ctx, t, forgottenNote, forgetting{V: 1, At: at})
		}
		for i := 0; i < len(waiting) && err == nil; i++ {
			err = s.decided(ctx, t, names[i], waiting[i])
		}
		if err = errors.Join(err, t.book.Refresh(ctx)); err != nil && ctx.Err() == nil && t.heldBy != err.Error() {
			s.log.Warn("siding: the ledger cannot keep yet that rules wait for an operator; a server that begins meanwhile would redrive what came home", "topic", t.DeadLetterTopic.Topic, "error", err)
		}
		if t.heldBy = ""; err != nil {
			t.heldBy = err.Error()
			return
		}
		s.log.Warn("siding: rules wait until an operator resumes them", "rules", names, "topic", t.DeadLetterTopic.Topic, "why", forgotWhy)
	})
}

// beginRun begins a run as a rule decided, and returns when it has ended. It leaves letters out
// that cannot come home to their groups: those that rest, and those of which it learns.
func (s *Server) beginRun(ctx context.Context, t *topic, r *rule.Rule, j *judged, rests *rest) error {
	s.outcomes.record(ctx, t.DeadLetterTopic.Topic)
	homeless, without := rests.err, rests.groups
	for {
		err := s.beginRunOf(ctx, t, r, j, leaving(r.Whole(t.DeadLetterTopic.Topic, j.filter, s.redact), without))
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

// leaving returns a filter without the letters of some groups.
func leaving(f dlq.Filter, groups []string) dlq.Filter {
	if len(groups) > 0 {
		fits := f.Match
		f.Match = func(l *dlq.Letter) bool { return !slices.Contains(groups, l.Meta.Group) && (fits == nil || fits(l)) }
	}
	return f
}

// among returns a filter of letters of one group.
func among(f dlq.Filter, group string) dlq.Filter {
	fits := f.Match
	f.Match = func(l *dlq.Letter) bool { return l.Meta.Group == group && (fits == nil || fits(l)) }
	return f
}

// beginRunOf begins a run of letters that a filter selects.
func (s *Server) beginRunOf(ctx context.Context, t *topic, r *rule.Rule, j *judged, f dlq.Filter) error {
	d := decision{V: 1, At: time.Now().UTC(), Do: doRedrive, Why: j.why}
	selection := redrive.Selection{Topic: t.DeadLetterTopic.Topic, Filter: f, MaxRedrives: r.MaxReplays}
	if j.do == rule.Canary {
		d.Do = doCanary
		at, err := t.canary(ctx, r, &f, s.cfg.Kafka)
		if err != nil {
			return err
		}
		selection.Filter.Ranges = []dlq.Range{at}
	}
	plan, err := s.redriver.Plan(ctx, selection)
	if err != nil {
		return err
	}
	d.Run = plan.ID
	if err := s.decided(ctx, t, r.Name, &d); err != nil {
		return err // what is not in the ledger is not done
	}
	return s.runRule(ctx, t, r, &d, func(on func(redrive.Event)) (redrive.Outcome, error) {
		return s.redriver.Run(ctx, plan, redrive.RunOptions{
			By: ruleName(r), Why: j.why, Pace: redrive.Pace{Rate: r.Rate, Window: r.Window}, On: on,
			Veto: func(ctx context.Context) error { return s.stands(ctx, t, r, j.do) },
		})
	})
}

// errForbidden reports that a rule would not decide any more as it did.
var errForbidden = errors.New("the rule would not begin it any more")

// stands checks a decision of a rule while its run is being claimed. This server may have been
// suspended for hours since it decided. So it asks the rule again, with all that the ledger has by
// now: that somebody paused the rule, or aborted its run, that another server owns the topic and
// has opened the circuit. The file may have another rule, or none. And groups may hold the source.
func (s *Server) stands(ctx context.Context, t *topic, r *rule.Rule, do rule.Action) error {
	if err := t.reread(ctx); err != nil {
		return err
	}
	if !slices.Contains(s.owned(), t) {
		return fmt.Errorf("%w: another server owns the topic", errForbidden)
	}
	rules := s.ruleList()
	i := slices.IndexFunc(rules, func(is rule.Rule) bool { return is.Name == r.Name && is.Covers(t.DeadLetterTopic.Topic) })
	if i < 0 {
		return fmt.Errorf("%w: it left the file of rules", errForbidden)
	}
	if !reflect.DeepEqual(rules[i].Filter, r.Filter) {
		return fmt.Errorf("%w: its filter has changed", errForbidden)
	}
	s.guards.Look(ctx)
	j, err := t.judge(&rules[i], s.guards.Of(t.Source), time.Now())
	switch {
	case err != nil:
		return err
	case j.do == rule.Nothing:
		return fmt.Errorf("%w: %s", errForbidden, j.why)
	case j.do != do:
		return fmt.Errorf("%w: by now it does something else, since %s", errForbidden, j.why)
	}
	return nil
}

// leftRun returns the run of somebody that no process owns any more; nil if there is none.
func (t *topic) leftRun(by string) *redrive.Outcome {
	for _, o := range t.known() {
		if o.By == by && t.silent(&o) {
			return &o
		}
	}
	return nil
}

// goOn continues a rule's run whose server ended.
func (s *Server) goOn(ctx context.Context, t *topic, r *rule.Rule, left *redrive.Outcome) error {
	d := decision{V: 1, At: left.Started.UTC(), Do: doRedrive, Why: left.Why, Run: left.ID}
	all := t.decisions(r.Name)
	if i := slices.IndexFunc(all, func(is decision) bool { return is.Run == left.ID }); i >= 0 {
		d = all[i]
	} else if err := s.decided(ctx, t, r.Name, &d); err != nil {
		return err
	}
	err := s.runRule(ctx, t, r, &d, func(on func(redrive.Event)) (redrive.Outcome, error) {
		return s.redriver.Resume(ctx, left.Topic, left.ID, redrive.RunOptions{By: ruleName(r), On: on}, redrive.IfSilent())
	})
	if refused, ok := errors.AsType[*redrive.RefusedError](err); ok && refused.Reason == redrive.RefusedOwned {
		return nil // another server was faster
	}
	if err != nil && ctx.Err() == nil {
		s.runner.hinder(left.Topic, left.ID, err)
	}
	return err
}

// runRule runs a redrive of a rule, and notes how it ended.
func (s *Server) runRule(ctx context.Context, t *topic, r *rule.Rule, d *decision, run func(func(redrive.Event)) (redrive.Outcome, error)) error {
	f := s.runner.follow(t.DeadLetterTopic.Topic)
	o, err := run(f.see)
	f.end(ctx, o, err)
	if ctx.Err() != nil {
		return nil // another server goes on with the run
	}
	switch _, failed := errors.AsType[*redrive.FailedAgainError](err); {
	case err == nil || failed:
	case f.run == nil && d.End == "": // it was not claimed
		d.End = notBegun + err.Error()
		if errors.Is(err, errForbidden) {
			err = nil
		}
		return errors.Join(err, s.decided(ctx, t, r.Name, d), t.book.Refresh(ctx))
	default:
		return err // settle notes the end of a run that somebody else has
	}
	// This server may have been suspended, and another one has settled the run, and decided anew.
	if err := t.reread(ctx); err != nil || !slices.Contains(s.owned(), t) {
		return err
	}
	_, err = s.settle(ctx, t, r, time.Now())
	return err
}

// decided writes a decision to the ledger, and deletes those that are too old.
func (s *Server) decided(ctx context.Context, t *topic, rule string, d *decision) error {
	if all := t.decisions(rule); len(all) > mostDecisions {
		inForce := standing(all)
		for i := range all[mostDecisions:] {
			if old := &all[mostDecisions+i]; old != inForce {
				_ = s.runner.note(ctx, t, old.name(rule), nil) // the next one tries again
			}
		}
	}
	return s.runner.note(ctx, t, d.name(rule), d)
}

// applyRules applies the rules to topics, one at a time to each topic.
func (s *Server) applyRules(ctx context.Context, topics []*topic, running *sync.WaitGroup) {
	rules := s.ruleList()
	if s.rules != nil {
		for _, t := range s.all() {
			s.holdRules(ctx, t, rules, slices.Contains(topics, t), running)
		}
	}
	for _, t := range topics {
		if len(rules) == 0 || t.book.Progress().Complete.IsZero() || !t.ruled.CompareAndSwap(false, true) {
			continue
		}
		running.Go(func() {
			defer t.ruled.Store(false)
			for i := range rules {
				if !rules[i].Covers(t.DeadLetterTopic.Topic) {
					continue
				}
				if err := s.applyRule(ctx, t, &rules[i]); err != nil && ctx.Err() == nil {
					s.log.Warn("siding: a rule could not be applied", "rule", rules[i].Name, "topic", t.DeadLetterTopic.Topic, "error", err)
				}
			}
		})
	}
}
