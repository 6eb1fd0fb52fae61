package redrive

import (
	"encoding/base64"
	"errors"
	"time"
)

// A dead-letter topic that is deleted and recreated has the old name, other letters at the old
// offsets, and another id. So a plan and a run are about an id: what was selected from the one
// topic is never sent from the other, and nothing is concluded from what the other lacks.

// ErrTopicRecreated is wrapped by the error of a run whose dead-letter topic was deleted, and was
// recreated or did not exist for ten seconds: its letters are gone. The run aborts itself.
var ErrTopicRecreated = errors.New("the dead-letter topic was deleted or recreated since the run began, and the letters of the run are gone")

// idText is a topic's id in a run's record, as it is in the ledger's entries.
func idText(id [16]byte) string {
	if id == ([16]byte{}) {
		return "" // of brokers that have none
	}
	return base64.RawURLEncoding.EncodeToString(id[:])
}

// parseID is the id of which idText made a text; zero where it is not known.
func parseID(text string) (id [16]byte) {
	if b, err := base64.RawURLEncoding.DecodeString(text); err == nil && len(b) == len(id) {
		copy(id[:], b)
	}
	return id
}

// isOther reports whether an id is known to be another topic's.
func isOther(id, now [16]byte) bool {
	return id != ([16]byte{}) && now != ([16]byte{}) && id != now
}

// The dead-letter topic is gone when that many looks in a row, over that time at least, did not
// find it: a single broker may be behind.
const (
	absentPolls = 10
	absentFor   = absentPolls * pollEvery
)

// absence is how often in a row the dead-letter topic was not there.
type absence struct {
	polls int
	since time.Time
}

// observe records whether a poll found the topic, and reports whether it is gone.
func (a *absence) observe(there bool, now time.Time) (gone bool) {
	if there {
		*a = absence{}
		return false
	}
	if a.polls++; a.polls == 1 {
		a.since = now
	}
	return a.polls >= absentPolls && now.Sub(a.since) >= absentFor
}
