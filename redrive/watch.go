package redrive

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/redrive/internal/bounds"
	"github.com/sidingkafka/siding/redrive/internal/inflight"
	"github.com/sidingkafka/siding/redrive/internal/letters"
	"github.com/sidingkafka/siding/redrive/internal/tail"
)

// watch reads the retry topics, the dead-letter topic and the ledger while a run goes on:
// uncommitted, since a committed reader sees nothing behind an open transaction, of ours or of
// anybody's. See DESIGN.md, "The watch".
type watch struct {
	*tail.Tail
	adm     *kadm.Client
	topics  *topics
	run     string
	groups  []string
	flights *inflight.Letters
	alarm   *alarm
	resumed bool // there are flights of which it is not known whose they are
	ids     map[string]kadm.TopicID
	live    bounds.Positions // where its topics ended when it began; it does not change
}

// watchFrom is where a watch begins that misses nothing from now on, and the ids of its topics.
func watchFrom(ctx context.Context, kafka []kgo.Opt, t *topics, groups []string) (bounds.Positions, map[string]string, error) {
	adm, err := client.NewAdmin(kafka...)
	if err != nil {
		return nil, nil, err
	}
	defer adm.Close()
	all, err := t.watched(ctx, adm, groups)
	if err != nil {
		return nil, nil, err
	}
	ids := map[string]string{}
	for name, d := range all {
		ids[name] = idText(d.ID)
	}
	from, err := bounds.Ends(ctx, adm, all.Names())
	return from, ids, err
}

// startWatch begins to read where the run's watch began.
func startWatch(ctx context.Context, h *ownedRun, fl *inflight.Letters, a *alarm, problem func(error)) (*watch, error) {
	cl, err := client.New(append(slices.Clip(h.r.cfg.Kafka),
		kgo.MetadataMinAge(250*time.Millisecond),
		kgo.WithContext(context.WithoutCancel(ctx)),
	)...)
	if err != nil {
		return nil, err
	}
	w := &watch{
		adm: kadm.NewClient(cl), topics: h.topics, run: h.rec.ID, groups: h.rec.Groups, flights: fl, alarm: a, resumed: len(h.inFlight) > 0,
		ids: map[string]kadm.TopicID{},
	}
	for topic, id := range h.rec.WatchIDs {
		w.ids[topic] = parseID(id)
	}
	w.Tail = tail.New(cl, w.observe, problem)
	if err := w.began(ctx, h); err != nil {
		cl.Close()
		return nil, err
	}
	w.Add(h.rec.Watch)
	w.Start(ctx)
	return w, nil
}

// began finds out what happened to the topics since the run began, and who writes for it.
func (w *watch) began(ctx context.Context, h *ownedRun) (err error) {
	names := slices.Collect(maps.Keys(h.rec.Watch))
	from, err := bounds.Starts(ctx, w.adm, names)
	if err != nil {
		return err
	}
	if w.live, err = bounds.EndsOfExisting(ctx, w.adm, names); err != nil {
		return err
	}
	if h.writers != nil {
		ids, err := h.writers.IDs(ctx)
		if err != nil {
			return fmt.Errorf("initialise transactional ids: %w", err)
		}
		w.Skip(ids)
	}
	for topic, partitions := range h.rec.Watch {
		for p, at := range partitions {
			if o, ok := from.Lookup(topic, p); ok && o.Offset > at {
				w.Lose(p)
			}
			if end, ok := w.live[topic][p]; ok && end < at { // another topic of that name
				w.Lose(p)
			}
		}
	}
	return nil
}

// observe is about one record.
func (w *watch) observe(r *kgo.Record) {
	if r.Topic == w.topics.ledger {
		w.seeEntry(r)
		return
	}
	dead := r.Topic == w.topics.dlq
	// a copy that was found to be malformed is a dead letter with its headers as they were
	if !dead && w.own(r.Headers) {
		return
	}
	m, err := headers.Parse(r.Headers)
	if err != nil && m.Redrive.ID != w.run {
		return // whatever else is broken in a letter of the run, it came back
	}
	at := headers.Position{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset}
	failure := Failure{Record: at.String(), Class: m.Class, Fingerprint: m.Fingerprint, Message: m.Message, At: r.Timestamp}
	if failure.Class == "" && dead {
		failure.Class = string(m.Reason)
	}
	key := classKey(failure.Class, m.Fingerprint)
	recent, came := w.recent(r)
	if dead && recent && slices.Contains(w.groups, m.Group) {
		w.alarm.onDeath(came)
	}
	switch {
	case m.Redrive.ID == w.run && m.Redrive.From.Topic == w.topics.dlq:
		from := m.Redrive.From
		s := inflight.ObservedCopy{Letter: letters.At(from.Partition, from.Offset), At: at, Group: m.Group, Hops: m.Hops, Class: failure.Class, Dead: dead}
		if w.flights.OnCopy(s) {
			failure.Letter = from.String()
			w.alarm.onRefail(key, failure)
		}
	case m.Redrive.ID == "" && !m.Held && m.Attempts == 1 && recent && slices.Contains(w.groups, m.Group):
		// Its first copy was written after the run began, so it failed first since then, whatever
		// the clocks say.
		w.alarm.onNewFailure(key, failure)
	}
}

// recent reports whether a record came within the window, and when. What comes while we watch does,
// whatever the clocks say; only what came before, of a run that was taken over, is judged by its
// timestamp.
func (w *watch) recent(r *kgo.Record) (recent bool, came time.Time) {
	now := time.Now()
	if r.Offset >= w.live[r.Topic][r.Partition] {
		return true, now
	}
	return now.Sub(r.Timestamp) <= w.alarm.recent(), r.Timestamp
}

// own reports whether a record is a copy that this run wrote, and that no consumer has run yet. The
// tail passes over most of these. After a resume their headers name their groups. A copy that a
// consumer wrote again, because it was not due by the consumer's clock, is not own: the letter has
// moved there.
func (w *watch) own(h []kgo.RecordHeader) bool {
	if w.resumed {
		return false
	}
	ours, untried, first := false, false, true
	for i := range h {
		switch h[i].Key {
		case headers.RedriveID:
			ours = string(h[i].Value) == w.run
		case headers.Attempts:
			untried = string(h[i].Value) == "0"
		case headers.Hops:
			first = string(h[i].Value) == "1"
		case headers.Held:
			return false
		}
	}
	return ours && untried && first
}

// discarded is in the value of each entry that says so.
var discarded = []byte(`"` + dlq.Discarded + `"`)

// seeEntry takes a consumer's report that it discarded a letter that was redriven.
func (w *watch) seeEntry(r *kgo.Record) {
	if !bytes.Contains(r.Value, discarded) { // most are the run's own
		return
	}
	n := dlq.ParseLedgerRecord(r)
	if run, ok := n.DiscardReport(); ok && run == w.run && n.Entry.State == dlq.Discarded {
		w.flights.Discard(letters.At(r.Partition, n.Letter))
	}
}

// adopt watches partitions that came to be since.
func (w *watch) adopt(found bounds.Positions) {
	fresh := bounds.Positions{}
	for topic, partitions := range found {
		for p := range partitions {
			fresh.Set(topic, p, 0)
		}
	}
	w.Add(fresh) // but for those that are watched
}

// checkTopics records the ids of watched topics. If a topic has another id than before, or than
// when the run began, something may have been missed.
func (w *watch) checkTopics(found kadm.TopicDetails) {
	for name, d := range found {
		if was, ok := w.ids[name]; ok && isOther(was, d.ID) {
			w.LoseTopic(name)
			continue
		}
		w.ids[name] = d.ID
	}
}
