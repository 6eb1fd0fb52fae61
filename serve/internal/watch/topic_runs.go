package watch

import (
	"encoding/json"
	"time"
)

// RunNote is what a ledger keeps of a run that began over the API. So each server finds the run of
// a request that is repeated, and goes on with it if the server that ran it ended.
type RunNote struct {
	V  int       `json:"v"`
	By string    `json:"by"`
	At time.Time `json:"at"`
	// Key stands for the sender and the Idempotency-Key, and Request for what was asked: hashes.
	Key     string `json:"key,omitempty"`
	Request string `json:"request,omitempty"`
}

// RunNotePrefix begins the names of the notes about runs.
const RunNotePrefix = "run/"

// RunNotes returns the notes about runs, by the runs' ids. A note that cannot be read is left out.
func RunNotes(t *Topic) map[string]RunNote {
	all := map[string]RunNote{}
	for id, text := range t.Index.Notes(RunNotePrefix) {
		var n RunNote
		if json.Unmarshal(text, &n) == nil {
			all[id] = n
		}
	}
	return all
}
