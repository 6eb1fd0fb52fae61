package alert

import (
	"context"
	"time"

	"github.com/sidingkafka/siding/serve/internal/watch"
)

// leaves is how long after it owned a topic a server keeps its incidents in mind: as long as the
// cause of an incident has to be away until it is over.
const leaves = time.Minute

// Leave decides about the incidents of topics that this server does not own any more. Their next
// owner goes on with what their ledgers have. If the topic is gone, or its note, no other server
// knows that people were notified of an incident: then this server notifies them that it is over.
func (a *Alerter) Leave(ctx context.Context, now time.Time) {
	for key, f := range a.followed {
		switch {
		case a.cfg.Owns(key.topic):
			continue // see follow
		case f.left.IsZero():
			f.left = now
		}
		t := a.cfg.Topic(key.topic)
		if now.Sub(f.left) < leaves || t != nil && !t.ReadSince(f.left) {
			continue
		}
		if f.ended && t == nil && f.unrecorded.Load() {
			continue // the ledger still says that people know of it
		}
		delete(a.followed, key)
		if f.ended {
			a.recordEnd(ctx, t, key, f)
			continue
		}
		why := "the topic is gone, or hidden from the server"
		if t != nil {
			if is, err := a.parse(t, key.kind); err != nil || is.Since.Equal(f.Since) {
				continue
			}
			why = "the ledger has no note of it"
		}
		if !f.End(now, why) {
			continue
		}
		a.changed(ctx, key, f)
		if a.send(key, f, nil); f.refused {
			a.cfg.Log.Error("siding: people are not told that an incident is over: too many messages wait for a receiver already", "topic", key.topic, "alert", key.kind, "most", MostWaiting)
		}
		for name := range f.asked { // this server is the only one that will ask them
			f.Accepted(name)
		}
		if f.By = a.me; t == nil { // the topic may come back, with its ledger
			a.followed[key], f.ended = f, true
			f.unrecorded.Store(true)
			a.cfg.Writer.Write(ctx, f.of.Index.Note(a.noteOf(key.kind), f.Note()), func(err error) { f.unrecorded.Store(err != nil) })
		}
	}
}

// recordEnd notes that this server notified of the end of an incident, if that could not be noted
// before the topic came back. Otherwise the topic's owner would assume that people know of an
// incident that goes on. t is nil if the topic is not back.
func (a *Alerter) recordEnd(ctx context.Context, t *watch.Topic, key incidentKey, f *followed) {
	if t == nil || !f.unrecorded.Load() {
		return
	}
	if is, err := a.parse(t, key.kind); err != nil || !is.On() || !is.Since.Equal(f.Since) {
		return // there is another incident, or the ledger knows
	}
	a.followed[key] = f // until the ledger was read with the note
	if t.MayRecord(time.Now()) {
		a.writeNote(ctx, t, a.noteOf(key.kind), f.Note(), func() {})
	}
}
