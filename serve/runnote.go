package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
)

// runNote is what a ledger keeps of a run that began over the API. So each server finds the run of
// a request that is repeated, and goes on with it if the server that ran it ended.
type runNote struct {
	V  int       `json:"v"`
	By string    `json:"by"`
	At time.Time `json:"at"`
	// Key stands for the sender and the Idempotency-Key, and Request for what was asked: hashes.
	Key     string `json:"key,omitempty"`
	Request string `json:"request,omitempty"`
}

const runNotes = "run/"

// keyTime is how long a repeated Idempotency-Key means the same run.
const keyTime = 24 * time.Hour

// hashOf returns a hash of texts.
func hashOf(texts ...string) string {
	h := sha256.New()
	for _, t := range texts {
		_, _ = h.Write(append([]byte(t), 0))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// runNotes returns the notes about runs, by the runs' ids. A note that cannot be read is left out.
func (t *topic) runNotes() map[string]runNote {
	all := map[string]runNote{}
	for id, text := range t.book.Notes(runNotes) {
		var n runNote
		if json.Unmarshal(text, &n) == nil {
			all[id] = n
		}
	}
	return all
}

// noteRun writes the note of a run, and deletes those that are too old to be of use.
func (s *Server) noteRun(ctx context.Context, t *topic, id string, n *runNote) error {
	unfinished := map[string]bool{}
	for _, o := range t.known() {
		unfinished[o.ID] = !o.State.Finished()
	}
	for old, is := range t.runNotes() {
		if time.Since(is.At) > keyTime && !unfinished[old] && old != id {
			_ = s.runner.note(ctx, t, runNotes+old, nil) // another one tries again
		}
	}
	return s.runner.note(ctx, t, runNotes+id, n)
}
