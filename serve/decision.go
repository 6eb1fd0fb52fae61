package serve

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sidingkafka/siding/serve/internal/rule"
)

// decision is something that a rule decided about a topic, or that an operator decided about the
// rule, as the ledger keeps it.
type decision struct {
	V   int       `json:"v"`
	At  time.Time `json:"at"`
	Do  string    `json:"do"`
	By  string    `json:"by,omitempty"` // of the operator
	Why string    `json:"why,omitempty"`
	Run string    `json:"run,omitempty"`
	// End is how the run ended; empty while it goes on.
	End string `json:"end,omitempty"`
}

// What is decided.
const (
	doRedrive = "redrive"
	doCanary  = "canary"
	doPause   = "paused"
	doResume  = "resumed"
)

// mostDecisions bounds the decisions of a rule on a topic that its ledger keeps.
const mostDecisions = 100

// The notes of a rule. Names of rules may have any character.
func ruleNotes(rule string) string         { return "rule/" + url.PathEscape(rule) + "/" }
func ruleStateNote(rule string) string     { return ruleNotes(rule) + "state" }
func ruleDecisionNotes(rule string) string { return ruleNotes(rule) + "decision/" }

// name returns the name of the decision's note: those of a rule sort by time.
func (d *decision) name(rule string) string {
	return fmt.Sprintf("%s%013d-%s", ruleDecisionNotes(rule), d.At.UnixMilli(), d.Do)
}

// decidedRules returns the rules of which the topic's ledger has decisions, also those that have
// left the file.
func (t *topic) decidedRules() (names []string) {
	for note := range t.book.Notes("rule/") {
		escaped, rest, _ := strings.Cut(note, "/")
		if name, err := url.PathUnescape(escaped); err == nil && strings.HasPrefix(rest, "decision/") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// decisions returns the decisions of a rule on a topic, the newest first.
func (t *topic) decisions(rule string) (all []decision) {
	for _, text := range t.book.Notes(ruleDecisionNotes(rule)) {
		var d decision
		if json.Unmarshal(text, &d) == nil {
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b decision) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Do, b.Do)) })
	return all
}

// standing returns the last decision of an operator about a rule; nil if there is none.
func standing(all []decision) *decision {
	for i := range all {
		if all[i].Do == doPause || all[i].Do == doResume {
			return &all[i]
		}
	}
	return nil
}

// paused returns the decision by which a rule is paused on the topic; nil if it is not.
func (t *topic) paused(rule string) *decision {
	last := standing(t.decisions(rule))
	if last == nil {
		return t.forgot(rule)
	}
	if last.Do == doPause {
		return last
	}
	return nil
}

// forgot returns the decision that a rule is paused because the topic's ledger is another one: its
// letters that came home are open again. It is nil if that is not so, or an operator has decided
// about the rule since. The owner writes it, so that it counts for servers that begin later.
func (t *topic) forgot(rule string) *decision {
	at := t.book.Forgotten()
	if at.IsZero() || standing(t.decisions(rule)) != nil {
		return nil
	}
	return &decision{V: 1, At: at.UTC(), Do: doPause, By: rulePrefix + rule, Why: "the ledger is newer than letters of the topic, so it does not know which of them came home: discard those, and resume the rule"}
}

// ruleState reads the state of a rule on a topic from its ledger, by the server's own clock.
func (t *topic) ruleState(name string, now time.Time) (s rule.State, err error) {
	note, known := t.book.Noted(ruleStateNote(name)), !t.book.Progress().Complete.IsZero()
	if note == nil {
		if known {
			t.hear("circuit/"+name, "", now, now)
		}
		return s, nil
	}
	if err := json.Unmarshal(note, &s); err != nil {
		return s, fmt.Errorf("the state of rule %q in %s cannot be read: %w", name, t.Ledger, err)
	}
	if known {
		at := t.hear("circuit/"+name, string(note), now, s.Opened)
		if s.IsOpen() {
			s.Opened, s.Until = at, at.Add(s.Wait)
		}
	}
	return s, nil
}
