package watch

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/held"
	"github.com/sidingkafka/siding/serve/internal/rule"
)

// RulePrefix and a rule's name are who redrove a letter, in ledgers.
const RulePrefix = "rule "

// RuleName is who a rule is, in ledgers.
func RuleName(r *rule.Rule) string { return RulePrefix + r.Name }

// Judged is what a rule does about a topic at a moment, and why.
type Judged struct {
	State  rule.State
	Filter dlq.Filter
	Facts  rule.Facts
	Paused *Decision
	Do     rule.Action
	Why    string
}

// Judge asks a rule what it does about a topic. guards are those of its source.
func Judge(t *Topic, r *rule.Rule, guards []api.Guard, now time.Time) (j Judged, err error) {
	if j.State, err = RuleState(t, r.Name, now); err == nil {
		err = t.unreliable()
	}
	if err != nil {
		return j, err // what is unknown is no permission
	}
	j.State, _ = Settled(t, r, j.State, now)
	j.Paused = Paused(t, r.Name)
	j.Filter = r.Selects(t.DeadLetterTopic.Topic, now)
	last := lastFailed(t, r, now)
	j.Facts = rule.Facts{
		Open: MayFit(t, r, &j.Filter, now), LastFailed: last, Unfinished: t.Unfinished(), Manual: t.Settings.ManualOnly, Paused: j.Paused != nil,
	}
	for i := 0; i < len(guards) && j.Facts.Held == ""; i++ {
		g := &guards[i]
		if of := among(j.Filter, g.Group); MayFit(t, r, &of, now) > 0 {
			j.Facts.Held = held.Describe(g, t.Source)
		}
	}
	j.Do, j.Why = r.Decide(now, &j.State, j.Facts)
	return j, nil
}

// lastFailed returns when a letter of a rule's classes failed last: when its service says so,
// unless that is yet to come, or when this server observed it. The clock of the service may be
// wrong. What the server finds at its first look failed when its letter was written, by the clock
// that sets the topic's timestamps, if that is later.
func lastFailed(t *Topic, r *rule.Rule, now time.Time) time.Time {
	f := dlq.Filter{Classes: r.Filter.Class, Dialects: rule.Dialects}
	came := fmt.Sprint(t.Index.Came(&f), " ", t.Index.LastFailed(&f))
	f.Until = now
	last := t.Index.LastFailed(&f)
	if !t.Index.Progress().Complete.IsZero() {
		says := t.Index.LastEntered(&dlq.Filter{Classes: r.Filter.Class, Dialects: rule.Dialects})
		if says.Before(last) {
			says = last
		}
		if at := t.ObservedAt("failure/"+r.Name, came, now, says); at.After(last) {
			last = at
		}
	}
	return last
}

// Settled returns a state of a rule with the ends of its runs that no server has recorded: an
// operator aborted the run, or the server ended with it. ends has these runs.
func Settled(t *Topic, r *rule.Rule, state rule.State, now time.Time) (_ rule.State, ends []redrive.Outcome) {
	recorded := map[string]bool{}
	for _, d := range Decisions(t, r.Name) {
		recorded[d.Run] = d.End != "" && !strings.HasPrefix(d.End, NotBegun)
	}
	for _, o := range t.Known() {
		if ended, decided := recorded[o.ID]; !decided || ended || !o.State.Finished() {
			continue
		}
		ends = append(ends, o)
		switch {
		case state.Run == o.ID: // the state has it, and the decision has not
		case o.State == redrive.Aborted:
			state = r.Ended(t.ObservedAt("run/"+o.ID, o.Cause, now, o.Ended), state, o.Cause)
		default:
			state = r.Ended(now, state, "")
		}
		state.Run = o.ID
	}
	return state, ends
}

// NotBegun begins the end of a decision whose run was not begun, with the reason behind it.
const NotBegun = "not begun: "

// Leaving returns a filter without the letters of some groups.
func Leaving(f dlq.Filter, groups []string) dlq.Filter {
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

// LeftRun returns the run of a sender that no process owns any more; nil if there is none.
func LeftRun(t *Topic, by string) *redrive.Outcome {
	for _, o := range t.Known() {
		if o.By == by && t.Silent(&o) {
			return &o
		}
	}
	return nil
}
