package operate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/sidingkafka/siding/serve/internal/watch"
)

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

// recordRun writes the note of a run, and deletes those that are too old to be of use.
func recordRun(ctx context.Context, d *Desk, t *watch.Topic, id string, n *watch.RunNote) error {
	unfinished := map[string]bool{}
	for _, o := range t.Known() {
		unfinished[o.ID] = !o.State.Finished()
	}
	for old, is := range watch.RunNotes(t) {
		if time.Since(is.At) > keyTime && !unfinished[old] && old != id {
			_ = d.Runner.WriteNote(ctx, t, watch.RunNotePrefix+old, nil) // another one tries again
		}
	}
	return d.Runner.WriteNote(ctx, t, watch.RunNotePrefix+id, n)
}
