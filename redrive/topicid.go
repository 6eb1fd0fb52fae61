package redrive

// Recognizes a recreated topic.

import (
	"encoding/base64"
	"errors"
	"time"
)

// A recreated dead-letter topic has the old name and another id, with other letters at the old
// offsets. So plans and runs belong to a topic id. A letter of one topic is never sent from the
// other, and no outcome is derived from the other.

// ErrTopicRecreated is wrapped by the error of a run whose dead-letter topic was recreated, or has
// been missing for ten seconds. The letters of the run are gone, and the run aborts itself.
var ErrTopicRecreated = errors.New("the dead-letter topic was deleted or recreated since the run began, and the letters of the run are gone")

// idText returns a topic's id as text for the ledger.
func idText(id [16]byte) string {
	if id == ([16]byte{}) {
		return "" // from brokers without topic ids
	}
	return base64.RawURLEncoding.EncodeToString(id[:])
}

// parseID is the inverse of idText; zero if the id is unknown.
func parseID(text string) (id [16]byte) {
	if b, err := base64.RawURLEncoding.DecodeString(text); err == nil && len(b) == len(id) {
		copy(id[:], b)
	}
	return id
}

// isOther reports whether two known ids differ.
func isOther(id, now [16]byte) bool {
	return id != ([16]byte{}) && now != ([16]byte{}) && id != now
}

// The dead-letter topic counts as gone after that many polls in a row without it, over at least
// that time. A single broker may have stale metadata.
const (
	absentPolls = 10
	absentFor   = absentPolls * pollEvery
)

// isGone reports whether the dead-letter topic is gone, from the times of the last polls in a row
// that did not find it.
func isGone(absent []time.Time) bool {
	n := len(absent)
	return n >= absentPolls && absent[n-1].Sub(absent[0]) >= absentFor
}
