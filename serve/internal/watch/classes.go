package watch

import (
	"encoding/json"
	"maps"
	"sync"
	"time"

	"github.com/sidingkafka/siding/serve/internal/letterindex"
)

// ClassesNote is the note that says when the first letter of each class was written. So a class is
// known, although its letters were pruned or retention deleted them.
const ClassesNote = "classes"

// mostClasses bounds the classes of the note. Of later ones only the topic's letters say when they
// were first.
const mostClasses = 1000

type knownClasses struct {
	V int `json:"v"`
	// First is in Unix milliseconds, by class.
	First map[string]int64 `json:"first"`
}

// Classes are what a topic remembers of its classes. It is safe for concurrent use.
type Classes struct {
	index *letterindex.Index

	mu    sync.Mutex
	note  string // that known was read of
	known knownClasses
	wrote string // the last note of this process
	shown map[string]bool
}

// remembered returns when the first letters of classes were written, as the ledger has it. The
// caller holds mu, and does not change the result.
func (c *Classes) remembered() map[string]int64 {
	if note := string(c.index.Noted(ClassesNote)); note != c.note {
		c.note, c.known = note, knownClasses{}
		if note == "" {
			c.wrote = "" // to the ledger before
		}
		if err := json.Unmarshal([]byte(note), &c.known); err != nil || c.known.V > 1 {
			c.known = knownClasses{} // the letters say it as well
		}
	}
	return c.known.First
}

// Firsts returns when the first letter of each class was written that the topic has letters of.
func (c *Classes) Firsts() map[string]time.Time {
	first := maps.Clone(c.index.Summary().FirstWritten)
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.remembered()
	for class, at := range first {
		if ms, ok := known[class]; ok && ms < at.UnixMilli() {
			first[class] = time.UnixMilli(ms)
		}
	}
	return first
}

// Remember returns the note that the ledger should have; nil if it has it. Only the owner calls it.
func (c *Classes) Remember() []byte {
	first := c.Firsts()
	c.mu.Lock()
	defer c.mu.Unlock()
	next := knownClasses{V: 1, First: maps.Clone(c.remembered())}
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
	if err != nil || string(note) == c.wrote {
		return nil // it was written, and is not read yet
	}
	return note
}

// Remembers registers that what remember returned was written.
func (c *Classes) Remembers(note []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrote = string(note)
}

// otherClasses stands for the classes of a topic beyond Config.MaxClasses. OpenTelemetry's
// conventions keep _OTHER for such.
const otherClasses = "_OTHER"

// Label returns a class as metrics name it: the first most classes of a topic have names of their
// own, as long as the server runs, since a number that moves from name to name would seem to grow
// and to fall. The caller passes the classes in the order of their importance.
func (c *Classes) Label(class string, most int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.shown[class] {
		if len(c.shown) >= most {
			return otherClasses
		}
		if c.shown == nil {
			c.shown = map[string]bool{}
		}
		c.shown[class] = true
	}
	return class
}
