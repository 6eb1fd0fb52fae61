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
	for name, text := range t.book.Notes(ruleDecisionNotes(rule)) {
		d := decision{note: ruleDecisionNotes(rule) + name}
		if json.Unmarshal(text, &d) == nil {
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b decision) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Do, b.Do)) })
	return all
}

// paused returns the decision by which a rule is paused on the topic; nil if it is not.
func (t *topic) paused(rule string) *decision {
	if forgot := t.forgot(rule); forgot != nil {
		return forgot
	}
	if last := standing(t.decisions(rule)); last != nil && last.Do == doPause {
		return last
	}
	return nil
}

// forgotten returns when a server saw last that the topic's ledger is another one, or has lost its
// end: letters that came home are open again. It is zero if none did. noted reports that the ledger
// says so.
func (t *topic) forgotten() (at time.Time, noted bool) {
	text := t.book.Noted(forgottenNote)
	if text == nil {
		return t.book.Forgotten().UTC(), false
	}
	is := forgetting{At: time.Unix(0, 0).UTC()} // what cannot be read is a reason to wait, too
	_ = json.Unmarshal(text, &is)
	if lost := t.book.Lost().UTC(); is.At.Before(lost) {
		return lost, false // the note is of a time before
	}
	return is.At, true
}

// forgot returns the decision that a rule is paused because of that; nil if it is not, or an
// operator has decided about the rule since.
func (t *topic) forgot(rule string) *decision {
	at, _ := t.forgotten()
	if is := standing(t.decisions(rule)); at.IsZero() || is != nil && !is.At.Before(t.book.Lost()) {
		return nil
	}
	return &decision{V: 1, At: at, Do: doPause, By: rulePrefix + rule, Why: forgotWhy}
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
