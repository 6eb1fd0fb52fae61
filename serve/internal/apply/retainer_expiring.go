package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/archive"
	"github.com/sidingkafka/siding/serve/internal/watch"
)

// expiryMargin is how long before Kafka's own retention a letter is archived, and at most a quarter
// of that retention. Letters are archived when the first of them has half of that left, so that an
// archive has more than a few.
const expiryMargin = 48 * time.Hour

// archivedNote names the note of what was archived before Kafka's own retention.
const archivedNote = "retention/archived"

// archivedUntil is that note: up to where letters were archived.
type archivedUntil struct {
	V       int             `json:"v"`
	TopicID string          `json:"topicId,omitempty"`
	At      time.Time       `json:"at"`
	Until   map[int32]int64 `json:"until"`
	Letters int64           `json:"letters"`
	Archive string          `json:"archive"`
}

// expiring is what Kafka's own retention is about to delete and no archive has.
type expiring struct {
	from, until map[int32]int64
	letters     int64
}

// expiringLetters returns what to archive before Kafka's own retention deletes it; the zero value
// if that is not known, or there is nothing yet.
func expiringLetters(t *watch.Topic, now time.Time) expiring {
	kept := t.Keeps()
	if kept == 0 {
		return expiring{} // for ever, or bounded by bytes alone
	}
	e := expiring{from: map[int32]int64{}}
	if note := t.Index.Noted(archivedNote); note != nil {
		// A note that cannot be read counts as none, and so does that of a topic which this one
		// replaced: letters that are archived twice do no harm.
		var was archivedUntil
		if json.Unmarshal(note, &was) == nil && was.TopicID == t.TopicID() {
			e.from = was.Until
		}
	}
	margin := min(expiryMargin, kept/4)
	if _, soon := t.Index.EnteredBefore(e.from, now.Add(margin/2-kept)); soon == 0 {
		return expiring{}
	}
	e.until, e.letters = t.Index.EnteredBefore(e.from, now.Add(margin-kept))
	return e
}

// archiveExpiring archives letters that Kafka's own retention is about to delete, and records that.
func (k *Retainer) archiveExpiring(ctx context.Context, t *watch.Topic, folder *archive.Target, report *api.RetentionReport, do *toRetain) error {
	e := do.expiring
	a, err := k.archive(ctx, t, folder, dlq.Cursor{At: e.from, End: e.until}, 0)
	if err != nil {
		return fmt.Errorf("letters that Kafka's own retention is about to delete: %w", err)
	}
	k.meters.archived(ctx, report.Topic, a.Letters)
	report.Expiring = a.Letters
	report.Archives = append(report.Archives, a.Location)
	until := map[int32]int64{}
	maps.Copy(until, e.from)
	maps.Copy(until, e.until)
	note, err := json.Marshal(archivedUntil{V: 1, TopicID: t.TopicID(), At: time.Now().UTC(), Until: until, Letters: a.Letters, Archive: a.Location})
	if err == nil {
		err = k.produce(ctx, t.Index.Note(archivedNote, note))
	}
	if err != nil {
		return fmt.Errorf("note in %s that letters are archived in %s, so they are archived again: %w", t.Ledger, a.Location, err)
	}
	k.cfg.Log.Info("siding: archived dead letters that Kafka's own retention is about to delete", "topic", report.Topic, "letters", a.Letters, "archive", a.Location)
	return nil
}
