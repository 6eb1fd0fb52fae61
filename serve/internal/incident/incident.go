package incident

import (
	"encoding/json"
	"fmt"
	"slices"
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
	// mostParts bounds the parts of an incident, and so its note. Nobody is told of further ones.
	mostParts = 100
)

// State is the state of one kind of incident of a topic. The zero value is that of none.
type State struct {
	V        int       `json:"v"`
	Severity Severity  `json:"severity,omitempty"`
	Text     string    `json:"text,omitempty"` // as of the last change
	Parts    []string  `json:"parts,omitempty"`
	Since    time.Time `json:"since,omitzero"`   // when it began
	Changed  time.Time `json:"changed,omitzero"` // when it began, became urgent, or got a part
	Over     time.Time `json:"over,omitzero"`    // zero while it lasts
	// Told is set when people were told of the last change. Before, ToldTo has the receivers that
	// were.
	Told   bool     `json:"told,omitempty"`
	ToldTo []string `json:"toldTo,omitempty"`
	// By stands for the process that wrote the note.
	By string `json:"by,omitempty"`
}

// On reports whether the incident lasts.
func (s *State) On() bool { return !s.Since.IsZero() && s.Over.IsZero() }

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

// See tells the follower which alert there is now; nil for none. It reports whether the state
// changed: then it has to be noted, and told.
func (f *Follower) See(now time.Time, a *Alert) (changed bool) {
	switch {
	case a != nil && !f.On():
		f.State, f.away = State{Severity: a.Severity, Text: a.Text, Parts: firsts(a.Parts), Since: now, Changed: now}, time.Time{}
		return true
	case a != nil:
		f.away = time.Time{}
		return f.worsens(now, a)
	case f.On() && f.away.IsZero():
		f.away = now
	case f.On() && now.Sub(f.away) >= settles:
		f.Over = now
		f.untold()
		return true
	}
	return false
}

// End ends the incident for a reason other than its alert, and reports whether people have to be
// told: they were told of the incident, and not of its end.
func (f *Follower) End(now time.Time, why string) (tell bool) {
	if f.Since.IsZero() || !f.On() && f.Told {
		return false
	}
	if f.On() {
		if !f.Told && len(f.ToldTo) == 0 && f.Changed.Equal(f.Since) {
			return false
		}
		f.Over = now
		f.untold()
	}
	f.Text += ": " + why
	return true
}

// worsens takes over an alert that is more urgent than before, or has parts that are new.
func (f *Follower) worsens(now time.Time, a *Alert) bool {
	urgent := a.Severity == Page && f.Severity == Warn
	added := slices.DeleteFunc(slices.Clone(a.Parts), func(p string) bool { return slices.Contains(f.Parts, p) })
	grows := len(added) > 0 && len(f.Parts) < mostParts && now.Sub(f.Changed) >= settles
	if !urgent && !grows {
		return false
	}
	if urgent {
		f.Severity = Page
	}
	f.Text, f.Parts, f.Changed = a.Text, firsts(append(f.Parts, added...)), now
	f.untold()
	return true
}

func (f *Follower) untold() { f.Told, f.ToldTo = false, nil }

func firsts(parts []string) []string { return slices.Clone(parts[:min(len(parts), mostParts)]) }
