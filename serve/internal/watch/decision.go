package watch

import (
	"fmt"
	"net/url"
	"time"
)

// Decision is something that a rule decided about a topic, or that an operator decided about the
// rule, as the ledger keeps it.
type Decision struct {
	V   int       `json:"v"`
	At  time.Time `json:"at"`
	Do  string    `json:"do"`
	By  string    `json:"by,omitempty"` // of the operator
	Why string    `json:"why,omitempty"`
	Run string    `json:"run,omitempty"`
	// End is how the run ended; empty while it goes on.
	End string `json:"end,omitempty"`

	note string // the name that it was read by; empty in a new one
}

// What is decided.
const (
	DoRedrive = "redrive"
	DoCanary  = "canary"
	DoPause   = "paused"
	DoResume  = "resumed"
)

// MostDecisions bounds the decisions of a rule on a topic that its ledger keeps.
const MostDecisions = 100

// The notes of a rule. Names of rules may have any character.
func ruleNotes(rule string) string         { return "rule/" + url.PathEscape(rule) + "/" }
func ruleDecisionNotes(rule string) string { return ruleNotes(rule) + "decision/" }

// RuleStateNote is the note of the state of a rule.
func RuleStateNote(rule string) string { return ruleNotes(rule) + "state" }

// Name returns the name of the decision's note: those of a rule sort by time. Servers of several
// groups may decide at once, so each run has a note of its own.
func (d *Decision) Name(rule string) string {
	if d.note != "" {
		return d.note
	}
	name := fmt.Sprintf("%s%013d-%s", ruleDecisionNotes(rule), d.At.UnixMilli(), d.Do)
	if d.Run != "" {
		name += "-" + d.Run
	}
	return name
}

// Standing returns the last decision of an operator about a rule; nil if there is none.
func Standing(all []Decision) *Decision {
	for i := range all {
		if all[i].Do == DoPause || all[i].Do == DoResume {
			return &all[i]
		}
	}
	return nil
}

// ForgottenNote keeps that the ledger is newer than letters of its topic.
const ForgottenNote = "forgotten"

// Forgetting is what that note has.
type Forgetting struct {
	V  int       `json:"v"`
	At time.Time `json:"at"` // when a server saw it
}

// ForgotWhy is why rules wait for an operator after that.
const ForgotWhy = "the ledger is newer than letters of the topic, or has lost entries of them, so it does not know which of them came home: discard those, and resume the rule"
