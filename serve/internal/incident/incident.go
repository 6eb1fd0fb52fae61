package incident

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Severity is how urgent an alert is.
type Severity string

// The severities.
const (
	Warn Severity = "warn"
	Page Severity = "page"
)

// Alert is a reason to alert, as long as it lasts.
type Alert struct {
	Severity Severity
	Text     string // what is wrong, in a sentence
	// Parts are the things that are wrong, where people want to know of each: classes, say.
	Parts []string
}

const (
	// settles is how long an alert must be away before its incident is over, and how long after a
	// change further parts have to wait: many of them are one message.
	settles = time.Minute
	// mostParts bounds the parts of an incident, and so its note. Further ones are in no
	// notification.
	mostParts = 100
)

// State is the state of one kind of incident of a topic. The zero value is that of none. Receivers
// have names, so servers with other ones know whom they have to notify.
type State struct {
	V        int       `json:"v"`
	Severity Severity  `json:"severity,omitempty"`
	Text     string    `json:"text,omitempty"` // as of the last change
	Parts    []string  `json:"parts,omitempty"`
	Since    time.Time `json:"since,omitzero"`   // when it began
	Changed  time.Time `json:"changed,omitzero"` // when it began, became urgent, or got a part
	Over     time.Time `json:"over,omitzero"`    // zero while it lasts
	// AcceptedBy are the names of the receivers that accepted the last change. GivenUp has those
	// that did not, with the reason: it was given up for them.
	AcceptedBy []string          `json:"toldTo,omitempty"`
	GivenUp    map[string]string `json:"givenUp,omitempty"`
	// Addressed are the receivers to which news of the incident were sent: they get its end. In
	// notes of older versions, which have none, it is nil, and all receivers do.
	Addressed []string `json:"addressed"`
	// AllNotified is from notes of older versions: all receivers of their server, if it had any,
	// were notified of the last change.
	AllNotified bool `json:"told,omitempty"`
	// By stands for the process that wrote the note.
	By string `json:"by,omitempty"`
}

// On reports whether the incident lasts.
func (s *State) On() bool { return !s.Since.IsZero() && s.Over.IsZero() }

// Awaits reports whether a receiver has to be notified of the last change: it was not, and the
// incident lasts, or it got the beginning.
func (s *State) Awaits(receiver string) bool {
	if s.Since.IsZero() || s.AllNotified || slices.Contains(s.AcceptedBy, receiver) {
		return false
	}
	return s.On() || s.Addressed == nil || slices.Contains(s.Addressed, receiver)
}

// Address registers that news of the incident are sent to a receiver, and reports whether that is
// new.
func (s *State) Address(receiver string) bool {
	if s.Addressed == nil || slices.Contains(s.Addressed, receiver) {
		return false
	}
	s.Addressed = append(s.Addressed, receiver)
	return true
}

// Accepted keeps that a receiver accepted the last change.
func (s *State) Accepted(receiver string) {
	delete(s.GivenUp, receiver)
	s.AcceptedBy = append(s.AcceptedBy, receiver)
}

// mostWhy bounds the reason why a message was given up, in bytes.
const mostWhy = 500

// GiveUp keeps why a receiver did not get the last change.
func (s *State) GiveUp(receiver, why string) {
	if s.GivenUp == nil {
		s.GivenUp = map[string]string{}
	}
	s.GivenUp[receiver] = strings.ToValidUTF8(why[:min(len(why), mostWhy)], "")
}

// Unnotified says for which receivers the last change was given up, and why, while the incident
// lasts and a day longer.
func (s *State) Unnotified(now time.Time) (all []string) {
	if !s.On() && now.Sub(s.Over) > 24*time.Hour {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(s.GivenUp)) {
		all = append(all, fmt.Sprintf("Receiver %s was not notified of an incident (%s): %s", name, s.Text, s.GivenUp[name]))
	}
	return all
}

// Parse reads a note. Without a note, the state is that of no incident.
func Parse(note []byte) (s State, err error) {
	if note == nil {
		return s, nil
	}
	if err := json.Unmarshal(note, &s); err != nil {
		return State{}, fmt.Errorf("incident: broken note: %w", err)
	}
	if s.V > 1 {
		return State{}, fmt.Errorf("incident: note of version %d: a newer siding wrote it", s.V)
	}
	return s, nil
}

// Note returns the state as a note.
func (s State) Note() []byte {
	s.V = 1
	note, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return note
}

// Follower follows one kind of incident of a topic, while its server owns the topic.
type Follower struct {
	State
	away time.Time // since when the alert is away, while the incident lasts
}

// Observe gives the follower the present alert; nil for none. It reports whether the state
// changed: then the caller notes it, and notifies the receivers.
func (f *Follower) Observe(now time.Time, a *Alert) (changed bool) {
	switch {
	case a != nil && !f.On():
		f.State, f.away = State{Severity: a.Severity, Text: a.Text, Parts: firsts(a.Parts), Since: now, Changed: now, Addressed: []string{}}, time.Time{}
		return true
	case a != nil:
		f.away = time.Time{}
		return f.worsens(now, a)
	case f.On() && f.away.IsZero():
		f.away = now
	case f.On() && now.Sub(f.away) >= settles:
		f.Over = now
		f.forgetReceivers()
		return true
	}
	return false
}

// Stay lets the incident last, although the alert is away for a reason that makes nothing better.
func (f *Follower) Stay() { f.away = time.Time{} }

// End ends the incident for a reason other than its alert, and reports whether people have to be
// notified: they may know of the incident, and do not of its end.
func (f *Follower) End(now time.Time, why string) (notify bool) {
	if f.Since.IsZero() || f.On() && f.Addressed == nil && !f.AllNotified && len(f.AcceptedBy) == 0 && f.Changed.Equal(f.Since) {
		return false
	}
	if f.On() {
		f.Over = now
		f.forgetReceivers()
	}
	if f.Addressed == nil {
		notify = !f.AllNotified
	} else {
		notify = slices.ContainsFunc(f.Addressed, f.Awaits)
	}
	if notify {
		f.Text += ": " + why
	}
	return notify
}

// worsens takes over an alert that is more urgent than before, or has parts that are new.
func (f *Follower) worsens(now time.Time, a *Alert) bool {
	urgent := a.Severity == Page && f.Severity == Warn
	added := slices.DeleteFunc(slices.Clone(a.Parts), func(p string) bool { return slices.Contains(f.Parts, p) })
	// Another server may have noted the change, and its clock may be fast.
	grows := len(added) > 0 && len(f.Parts) < mostParts && now.Sub(f.Changed).Abs() >= settles
	if !urgent && !grows {
		return false
	}
	if urgent {
		f.Severity = Page
	}
	f.Text, f.Parts, f.Changed = a.Text, firsts(append(f.Parts, added...)), now
	f.forgetReceivers()
	return true
}

func (f *Follower) forgetReceivers() { f.AllNotified, f.AcceptedBy, f.GivenUp = false, nil, nil }

func firsts(parts []string) []string { return slices.Clone(parts[:min(len(parts), mostParts)]) }
