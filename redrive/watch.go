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
	"github.com/sidingkafka/siding/internal/ledgerrecord"
	"github.com/sidingkafka/siding/redrive/internal/bounds"
	"github.com/sidingkafka/siding/redrive/internal/inflight"
	"github.com/sidingkafka/siding/redrive/internal/letters"
	"github.com/sidingkafka/siding/redrive/internal/tail"
)

// watch reads the retry topics, the dead-letter topic and the ledger during a run. It reads
// uncommitted, because an open transaction of any producer hides the records behind it from a
// committed reader. See DESIGN.md, "The watch".
type watch struct {
	*tail.Tail
	adm     *kadm.Client
	topics  *topics
	run     string
	groups  []string
	flights *inflight.Letters
	alarm   *alarm
	ids     map[string]kadm.TopicID
	live    bounds.Positions // the topics' ends at the start of the watch; never changed
}

// watchFrom returns the present ends of the watched topics, and the topics' ids.
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

// startWatch starts reading at the position at which the run's watch began.
func startWatch(ctx context.Context, run *ownedRun, fl *inflight.Letters, a *alarm, problem func(error)) (*watch, error) {
	cl, err := client.New(append(slices.Clip(run.r.cfg.Kafka),
		kgo.MetadataMinAge(250*time.Millisecond),
		kgo.WithContext(context.WithoutCancel(ctx)),
	)...)
	if err != nil {
		return nil, err
	}
	w := &watch{
		adm: kadm.NewClient(cl), topics: run.topics, run: run.rec.ID, groups: run.rec.Groups, flights: fl, alarm: a,
		ids: map[string]kadm.TopicID{},
	}
	for topic, id := range run.rec.WatchIDs {
		w.ids[topic] = parseID(id)
	}
	w.Tail = tail.New(cl, w.observe, problem)
	if err := w.began(ctx, run); err != nil {
		cl.Close()
		return nil, err
	}
	w.Add(run.rec.Watch)
	w.Start(ctx)
	return w, nil
}

// began compares the topics with their state at the run's begin, and skips records of the run's own
// producers.
func (w *watch) began(ctx context.Context, run *ownedRun) (err error) {
	names := slices.Collect(maps.Keys(run.rec.Watch))
	from, err := bounds.Starts(ctx, w.adm, names)
	if err != nil {
		return err
	}
	if w.live, err = bounds.EndsOfExisting(ctx, w.adm, names); err != nil {
		return err
	}
	if run.writers != nil {
		ids, err := run.writers.IDs(ctx)
		if err != nil {
			return fmt.Errorf("initialise transactional ids: %w", err)
		}
		w.SkipProducers(ids)
	}
	for topic, partitions := range run.rec.Watch {
		for p, at := range partitions {
			end, ok := w.live[topic][p]
			if from[topic][p] > at || ok && end < at { // records expired, or a recreated topic
				w.MarkMissed(p)
			}
		}
	}
	return nil
}

// observe handles one record.
func (w *watch) observe(r *kgo.Record) {
	if r.Topic == w.topics.ledger {
		w.applyReport(r)
		return
	}
	dead := r.Topic == w.topics.dlq
	m, err := headers.Parse(r.Headers)
	if err != nil && m.Redrive.ID != w.run {
		return // damaged, and not of this run; a damaged letter of the run still counts as failed
	}
	at := headers.Position{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset}
	failure := Failure{Record: at.String(), Class: m.Class, Fingerprint: m.Fingerprint, Message: m.Message, At: r.Timestamp}
	if failure.Class == "" && dead {
		failure.Class = string(m.Reason)
	}
	key := classKey(failure.Class, m.Fingerprint)
	recent, came := w.recent(r)
	own := m.Redrive.ID == w.run && m.Redrive.From.Topic == w.topics.dlq
	if dead && recent && (own || slices.Contains(w.groups, m.Group)) {
		w.alarm.onDeath(came)
	}
	switch {
	case own:
		from := m.Redrive.From
		s := inflight.ObservedCopy{Letter: letters.At(from.Partition, from.Offset), At: at, Group: m.Group, Hops: m.Hops, Class: failure.Class, Dead: dead}
		if w.flights.OnCopy(s) {
			failure.Letter = from.String()
			retried := r.Topic
			if dead {
				retried = ""
			}
			w.alarm.onRefail(key, retried, failure)
		}
	case m.Redrive.ID == "" && !m.Held && m.Attempts == 1 && m.Hops <= 1 && recent && slices.Contains(w.groups, m.Group):
		// Its first copy was written after the run began, so its first failure is newer than the
		// run. Clocks do not matter. Later failures in a strain are no attempts, but copies.
		w.alarm.onNewFailure(key, failure)
	}
}

// recent reports whether a record arrived within the window, and when. A record that arrived since
// the watch started always did. An earlier record, of a run that was taken over, is judged by its
// timestamp.
func (w *watch) recent(r *kgo.Record) (recent bool, came time.Time) {
	now := time.Now()
	if r.Offset >= w.live[r.Topic][r.Partition] {
		return true, now
	}
	return now.Sub(r.Timestamp) <= w.alarm.recent(), r.Timestamp
}

// discarded is part of the value of every entry with the state discarded.
var discarded = []byte(`"` + dlq.Discarded + `"`)

// applyReport handles a consumer's report that it discarded a redriven letter. An operator who
// reopens the letter revokes the report.
func (w *watch) applyReport(r *kgo.Record) {
	// cheaper than parsing, and most entries are the run's own
	if r.Value != nil && !bytes.Contains(r.Value, discarded) {
		return
	}
	n := dlq.ParseLedgerRecord(r)
	run, _, ok := ledgerrecord.DiscardReportOf(n.Run)
	if reported := n.Entry.State == dlq.Discarded; ok && run == w.run && (reported || r.Value == nil) {
		w.flights.Discard(letters.At(r.Partition, n.Letter), reported)
	}
}

// adopt watches partitions that were created after the start.
func (w *watch) adopt(found bounds.Positions) {
	fresh := bounds.Positions{}
	for topic, partitions := range found {
		for p := range partitions {
			fresh.Set(topic, p, 0)
		}
	}
	w.Add(fresh) // ignores partitions that are watched
}

// checkTopics records the ids of watched topics. If a topic was recreated, its records may have
// been missed.
func (w *watch) checkTopics(found kadm.TopicDetails) {
	for name, d := range found {
		if was, ok := w.ids[name]; ok && isOther(was, d.ID) {
			w.MarkTopicMissed(name)
			continue
		}
		w.ids[name] = d.ID
	}
}
