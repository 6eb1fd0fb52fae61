package watch

import (
	"encoding/json"
	"maps"
	"time"
)

// ClassesNote is the note that tells when the first letter of each class was written. So a class is
// known, although its letters were pruned or retention deleted them.
const ClassesNote = "classes"

// mostClasses bounds the classes of the note. Of later ones the topic's letters alone tell.
const mostClasses = 1000

type knownClasses struct {
	V int `json:"v"`
	// First is in Unix milliseconds, by class.
	First map[string]int64 `json:"first"`
}

// classes are what a topic remembers of its classes.
type classes struct {
	note  string // that known was read of
	known knownClasses
	wrote string // the last note of this process
	shown map[string]bool
}

// remembered returns when the first letters of classes were written, as the ledger has it. The
// caller holds the topic's lock, and does not change the result.
func (t *Topic) remembered() map[string]int64 {
	c := &t.classes
	if note := string(t.Book.Noted(ClassesNote)); note != c.note {
		c.note, c.known = note, knownClasses{}
		if note == "" {
			c.wrote = "" // to the ledger before
		}
		if err := json.Unmarshal([]byte(note), &c.known); err != nil || c.known.V > 1 {
			c.known = knownClasses{} // the letters tell as well
		}
	}
	return c.known.First
}

// Firsts returns when the first letter of each class was written that the topic has letters of.
func (t *Topic) Firsts() map[string]time.Time {
	first := maps.Clone(t.Book.Summary().FirstWritten)
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.remembered()
	for class, at := range first {
		if ms, ok := known[class]; ok && ms < at.UnixMilli() {
			first[class] = time.UnixMilli(ms)
		}
	}
	return first
}

// Remember returns the note that the ledger should have; nil if it has it. Only the owner calls it.
func (t *Topic) Remember() []byte {
	first := t.Firsts()
	t.mu.Lock()
	defer t.mu.Unlock()
	next := knownClasses{V: 1, First: maps.Clone(t.remembered())}
	if next.First == nil {
		next.First = map[string]int64{}
	}
	changed := false
	for class, at := range first {
		ms, ok := next.First[class]
		if (!ok && len(next.First) < mostClasses) || (ok && at.UnixMilli() < ms) {
			next.First[class] = at.UnixMilli()
			changed = true
		}
	}
	if !changed {
		return nil
	}
	note, err := json.Marshal(next)
	if err != nil || string(note) == t.classes.wrote {
		return nil // it was written, and is not read yet
	}
	return note
}

// Remembers notes that what remember returned was written.
func (t *Topic) Remembers(note []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.classes.wrote = string(note)
}

// otherClasses stands for the classes of a topic beyond Config.MaxClasses. OpenTelemetry's
// conventions keep _OTHER for such.
const otherClasses = "_OTHER"

// Label returns a class as metrics name it: the first most classes of a topic have names of their
// own, as long as the server runs, since a number that moves from name to name would seem to grow
// and to fall. The caller passes the classes in the order of their importance.
func (t *Topic) Label(class string, most int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.classes.shown[class] {
		if len(t.classes.shown) >= most {
			return otherClasses
		}
		if t.classes.shown == nil {
			t.classes.shown = map[string]bool{}
		}
		t.classes.shown[class] = true
	}
	return class
}
