package incident

import (
	"encoding/json"
	"fmt"
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
}

// settles is how long an alert must be away before its incident is over.
const settles = time.Minute

// State is the state of one kind of incident of a topic. The zero value is that of none.
type State struct {
	V        int       `json:"v"`
	Severity Severity  `json:"severity,omitempty"`
	Text     string    `json:"text,omitempty"` // as the incident began
	Since    time.Time `json:"since,omitzero"` // when it began
	Over     time.Time `json:"over,omitzero"`  // zero while it lasts
	Told     bool      `json:"told,omitempty"` // people were told of the last change
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
		f.State, f.away = State{Severity: a.Severity, Text: a.Text, Since: now}, time.Time{}
		return true
	case a != nil:
		f.away = time.Time{}
		if a.Severity == Page && f.Severity == Warn {
			f.Severity, f.Text, f.Told = Page, a.Text, false
			return true
		}
	case f.On() && f.away.IsZero():
		f.away = now
	case f.On() && now.Sub(f.away) >= settles:
		f.Over, f.Told = now, false
		return true
	}
	return false
}
