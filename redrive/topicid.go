package redrive

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/sidingkafka/siding/redrive/internal/permission"
)

// A dead-letter topic that is deleted and made anew has the old name, other letters at the old offsets, and another id. So a plan and a
// run are about an id: what was selected from the one topic is never sent from the other, and nothing is concluded from what the other
// lacks.

// ErrTopicRecreated is wrapped by the error of a run whose dead-letter topic was deleted and
// made anew, or deleted and for ten seconds not made again: its letters are gone. A run
// that finds out aborts itself.
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

// topicID is that of the dead-letter topic that a run is about; zero where it is not known.
func (r *record) topicID() [16]byte { return parseID(r.TopicID) }

// isOther reports whether an id is known to be another topic's.
func isOther(id, now [16]byte) bool {
	return id != ([16]byte{}) && now != ([16]byte{}) && id != now
}

// sameTopic makes sure that the dead-letter topic is the one that the run is about.
func (h *ownedRun) sameTopic(found kadm.TopicDetails) error {
	if d, ok := found[h.topics.dlq]; ok && d.Err == nil && isOther(h.topicID, d.ID) {
		return ErrTopicRecreated
	}
	return nil
}

// The dead-letter topic is gone when that many looks in a row, over that time at least, did not find it: a single broker may be behind.
const (
	absentPolls = 10
	absentFor   = absentPolls * pollEvery
)

// absence is how often in a row the dead-letter topic was not there.
type absence struct {
	polls int
	since time.Time
}

// observe takes down a look, and reports whether the topic is gone.
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

// there makes sure that a look found the dead-letter topic. A list of all topics leaves out those that may not be described, so it is
// asked for by its name.
func (o *outcomes) there(ctx context.Context, found kadm.TopicDetails) error {
	name := o.topics.dlq
	if found.Has(name) {
		o.absence.observe(true, time.Now())
		return nil
	}
	named, err := o.watch.adm.ListTopics(ctx, name)
	if err != nil {
		return fmt.Errorf("list topics: %w", err)
	}
	if err := named[name].Err; !errors.Is(err, kerr.UnknownTopicOrPartition) {
		return fmt.Errorf("describe topic %q: not among all topics: %w", name, permission.Denied("DESCRIBE", "topic", name, err))
	}
	if o.absence.observe(false, time.Now()) {
		return ErrTopicRecreated
	}
	return fmt.Errorf("the dead-letter topic %s is not there", name)
}

// checkTopics takes down the ids of watched topics. Of one that has another than before, or than when the run began, something may have been
// missed.
func (w *watch) checkTopics(found kadm.TopicDetails) {
	for name, d := range found {
		if was, ok := w.ids[name]; ok && isOther(was, d.ID) {
			w.LoseTopic(name)
			continue
		}
		w.ids[name] = d.ID
	}
}
