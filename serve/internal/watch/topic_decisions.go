package watch

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

// DecidedRules returns the rules of which the topic's ledger has decisions, also those that have
// left the file.
func DecidedRules(t *Topic) (names []string) {
	for note := range t.Index.Notes("rule/") {
		escaped, rest, _ := strings.Cut(note, "/")
		if name, err := url.PathUnescape(escaped); err == nil && strings.HasPrefix(rest, "decision/") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Decisions returns the decisions of a rule on a topic, the newest first.
func Decisions(t *Topic, rule string) (all []Decision) {
	for name, text := range t.Index.Notes(ruleDecisionNotes(rule)) {
		d := Decision{note: ruleDecisionNotes(rule) + name}
		if json.Unmarshal(text, &d) == nil {
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b Decision) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Do, b.Do)) })
	return all
}

// Paused returns the decision by which a rule is paused on the topic; nil if it is not.
func Paused(t *Topic, rule string) *Decision {
	if forgot := Forgot(t, rule); forgot != nil {
		return forgot
	}
	if last := Standing(Decisions(t, rule)); last != nil && last.Do == DoPause {
		return last
	}
	return nil
}

// Forgotten returns when a server saw last that the topic's ledger is another one, or has lost its
// end: letters that came home are open again. It is zero if none did. noted reports that the ledger
// says so.
func Forgotten(t *Topic) (at time.Time, noted bool) {
	text := t.Index.Noted(ForgottenNote)
	if text == nil {
		return t.Index.Forgotten().UTC(), false
	}
	is := Forgetting{At: time.Unix(0, 0).UTC()} // what cannot be read is a reason to wait, too
	_ = json.Unmarshal(text, &is)
	if lost := t.Index.Lost().UTC(); is.At.Before(lost) {
		return lost, false // the note is of a time before
	}
	return is.At, true
}

// Forgot returns the decision that a rule is paused because of that; nil if it is not, or an
// operator has decided about the rule since.
func Forgot(t *Topic, rule string) *Decision {
	at, _ := Forgotten(t)
	if is := Standing(Decisions(t, rule)); at.IsZero() || is != nil && !is.At.Before(t.Index.Lost()) {
		return nil
	}
	return &Decision{V: 1, At: at, Do: DoPause, By: RulePrefix + rule, Why: ForgotWhy}
}

// RuleState reads the state of a rule on a topic from its ledger, by the server's own clock.
func RuleState(t *Topic, name string, now time.Time) (s rule.State, err error) {
	note, known := t.Index.Noted(RuleStateNote(name)), !t.Index.Progress().Complete.IsZero()
	if note == nil {
		if known {
			t.ObservedAt("circuit/"+name, "", now, now)
		}
		return s, nil
	}
	if err := json.Unmarshal(note, &s); err != nil {
		return s, fmt.Errorf("the state of rule %q in %s cannot be read: %w", name, t.Ledger, err)
	}
	if known {
		at := t.ObservedAt("circuit/"+name, string(note), now, s.Opened)
		if s.IsOpen() {
			s.Opened, s.Until = at, at.Add(s.Wait)
		}
	}
	return s, nil
}
