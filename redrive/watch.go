package redrive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

// watch reads the retry topics, the dead-letter topic and the ledger while a run goes on: uncommitted, since a committed reader sees
// nothing behind an open transaction, of ours or of anybody's.
type watch struct {
	cl      *kgo.Client
	adm     *kadm.Client
	topics  *topics
	run     string
	groups  []string
	flights *flights
	alarm   *alarm
	problem func(error)
	resumed bool // there are flights of which it is not known whose they are
	stop    context.CancelFunc
	stopped chan struct{}

	mu    sync.Mutex
	at    positions
	moved chan struct{}  // closed when at moves
	lossy map[int32]bool // partitions of which something may have been missed
	ids   map[string]kadm.TopicID
	live  positions // where its topics ended when it began; it does not change
}

// watchFrom is where a watch begins that misses nothing from now on.
func (r *Redriver) watchFrom(ctx context.Context, t *topics, groups []string) (positions, error) {
	adm, err := kadm.NewOptClient(r.cfg.Kafka...)
	if err != nil {
		return nil, err
	}
	defer adm.Close()
	all, err := t.watched(ctx, adm, groups)
	if err != nil {
		return nil, err
	}
	return ends(ctx, adm, all.Names())
}

// ends are the high watermarks of topics.
func ends(ctx context.Context, adm *kadm.Client, names []string) (positions, error) {
	listed, err := adm.ListEndOffsets(ctx, names...)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("list end offsets: %w", err)
	}
	at := positions{}
	listed.Each(func(o kadm.ListedOffset) { at.set(o.Topic, o.Partition, o.Offset) })
	return at, nil
}

// startWatch begins to read where the run's watch began.
func (h *held) startWatch(ctx context.Context, fl *flights, a *alarm, problem func(error)) (*watch, error) {
	w := &watch{
		topics: h.topics, run: h.rec.ID, groups: h.rec.Groups, flights: fl, alarm: a, problem: problem, stopped: make(chan struct{}), resumed: len(h.flights) > 0,
		at: positions{}, moved: make(chan struct{}), lossy: map[int32]bool{}, ids: map[string]kadm.TopicID{}, live: positions{},
	}
	cl, err := kgo.NewClient(append(slices.Clip(h.r.cfg.Kafka),
		kgo.FetchIsolationLevel(kgo.ReadUncommitted()),
		kgo.KeepControlRecords(), // so that the position comes to the end, whatever is there
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxWait(250*time.Millisecond),
		kgo.MetadataMinAge(250*time.Millisecond),
		kgo.WithContext(context.WithoutCancel(ctx)),
	)...)
	if err != nil {
		return nil, err
	}
	w.cl, w.adm = cl, kadm.NewClient(cl)
	starts, err := w.adm.ListStartOffsets(ctx, slices.Collect(maps.Keys(h.rec.Watch))...)
	if err != nil {
		cl.Close()
		return nil, fmt.Errorf("list start offsets: %w", err)
	}
	to, err := w.adm.ListEndOffsets(ctx, slices.Collect(maps.Keys(h.rec.Watch))...)
	if err != nil {
		cl.Close()
		return nil, fmt.Errorf("list end offsets: %w", err)
	}
	for topic, partitions := range h.rec.Watch {
		for p, at := range partitions {
			if o, ok := starts.Lookup(topic, p); ok && o.Err == nil && o.Offset > at {
				w.lossy[p] = true
			}
			if o, ok := to.Lookup(topic, p); ok && o.Err == nil {
				w.live.set(topic, p, o.Offset)
				if o.Offset < at { // another topic of that name
					w.lossy[p] = true
				}
			}
		}
	}
	w.add(h.rec.Watch)
	ctx, w.stop = context.WithCancel(context.WithoutCancel(ctx))
	go w.loop(ctx)
	return w, nil
}

// add reads more partitions.
func (w *watch) add(from positions) {
	w.mu.Lock()
	defer w.mu.Unlock()
	read := map[string]map[int32]kgo.Offset{}
	for topic, partitions := range from {
		for p, at := range partitions {
			if _, ok := w.at[topic][p]; ok {
				continue
			}
			if read[topic] == nil {
				read[topic] = map[int32]kgo.Offset{}
			}
			read[topic][p] = kgo.NewOffset().At(at)
			w.at.set(topic, p, at)
		}
	}
	w.cl.AddConsumePartitions(read)
}

// close ends the reading.
func (w *watch) close() {
	w.stop()
	<-w.stopped
	w.cl.Close()
}

func (w *watch) loop(ctx context.Context) {
	defer close(w.stopped)
	for ctx.Err() == nil {
		fetches := w.cl.PollFetches(ctx)
		fetches.EachError(func(topic string, partition int32, err error) {
			if ctx.Err() == nil && !errors.Is(err, context.Canceled) {
				w.problem(fmt.Errorf("watch %s/%d: %w", topic, partition, err))
			}
		})
		w.mu.Lock()
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			p.EachRecord(func(r *kgo.Record) {
				w.see(r)
				w.at.set(r.Topic, r.Partition, r.Offset+1)
			})
		})
		close(w.moved)
		w.moved = make(chan struct{})
		w.mu.Unlock()
	}
}

// see is about one record.
func (w *watch) see(r *kgo.Record) {
	if r.Attrs.IsControl() {
		return
	}
	if r.Topic == w.topics.ledger {
		w.seeEntry(r)
		return
	}
	dead := r.Topic == w.topics.dlq
	if !dead && w.own(r.Headers) { // a copy that was found to be malformed is a dead letter with its headers as they were
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
		w.alarm.died(came)
	}
	switch {
	case m.Redrive.ID == w.run && m.Redrive.From.Topic == w.topics.dlq:
		from := m.Redrive.From
		s := sighting{letter: place{from.Partition, from.Offset}, at: at, group: m.Group, hops: m.Hops, class: failure.Class, fingerprint: m.Fingerprint, dead: dead}
		if w.flights.seen(s) {
			failure.Letter = from.String()
			w.alarm.failedAgain(key, failure)
		}
	case m.Redrive.ID == "" && !m.Held && m.Attempts == 1 && recent && slices.Contains(w.groups, m.Group):
		// Its first copy was written after the run began, so it failed first since then, whatever the clocks say.
		w.alarm.failedNew(key, failure)
	}
}

// recent reports whether a record came within the window, and when. What comes while we watch does, whatever the clocks say; only what
// came before, of a run that was taken over, is judged by its timestamp.
func (w *watch) recent(r *kgo.Record) (recent bool, came time.Time) {
	now := time.Now()
	if r.Offset >= w.live[r.Topic][r.Partition] {
		return true, now
	}
	return now.Sub(r.Timestamp) <= w.alarm.recent(), r.Timestamp
}

// own reports whether a record is a copy that this run wrote, which nobody has run yet; most are. Of a run that was resumed they say
// whose they are. One that a consumer wrote again, since it was not due by its clock, is none: the letter has moved there.
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

// seeEntry is about what a consumer writes into the ledger: that it discarded a letter that was brought back.
func (w *watch) seeEntry(r *kgo.Record) {
	if !bytes.Contains(r.Value, discarded) { // most are the run's own
		return
	}
	if letter, e, err := dlq.ParseEntry(r); err == nil && e.State == dlq.Discarded && e.Run == w.run {
		w.flights.discard(place{r.Partition, letter})
	}
}

// reach waits until the reading has come to a position everywhere.
func (w *watch) reach(ctx context.Context, to positions) error {
	for {
		w.mu.Lock()
		topic, partition, short := w.short(to)
		moved := w.moved
		w.mu.Unlock()
		if !short {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("watch %s/%d up to %d: %w", topic, partition, to[topic][partition], context.Cause(ctx))
		}
	}
}

// short names a partition on which the reading has not come that far.
func (w *watch) short(to positions) (topic string, partition int32, short bool) {
	for topic, partitions := range to {
		for p, at := range partitions {
			if w.at[topic][p] < at {
				return topic, p, true
			}
		}
	}
	return "", 0, false
}

// adopt watches partitions that came to be since.
func (w *watch) adopt(found positions) {
	fresh := positions{}
	w.mu.Lock()
	for topic, partitions := range found {
		for p := range partitions {
			if _, ok := w.at[topic][p]; !ok {
				fresh.set(topic, p, 0)
			}
		}
	}
	w.mu.Unlock()
	if len(fresh) > 0 {
		w.add(fresh)
	}
}

// missed reports whether something of a partition may have been missed: retention took it before the watch came.
func (w *watch) missed(partition int32) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lossy[partition]
}
