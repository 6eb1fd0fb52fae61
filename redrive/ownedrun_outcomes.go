package redrive

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/redrive/internal/bounds"
	"github.com/sidingkafka/siding/redrive/internal/inflight"
	"github.com/sidingkafka/siding/redrive/internal/letters"
	"github.com/sidingkafka/siding/redrive/internal/permission"
)

// writeOutcomes writes outcomes of letters that have none in the ledger, and the run's new counts.
func (h *ownedRun) writeOutcomes(ctx context.Context, verdicts []inflight.Verdict) (resolved int64, err error) {
	h.rec.Edit = editRecord{} // kept by an older version that ended the run
	pending := letters.Set{}
	for _, l := range h.inFlight {
		pending.Add(l.At)
	}
	for some := range slices.Chunk(verdicts, loadStart/(2*entryBytes)) {
		var notes []*kgo.Record
		written := int64(0)
		for _, v := range some {
			if pending.Remove(v.Letter) {
				notes = append(notes, h.applyVerdict(v)...)
				written++
				h.rec.Counts.add(v.Entry)
			}
		}
		h.rec.Counts.Pending = pending.Len()
		h.rec.Counts.Retrying = min(h.rec.Counts.Retrying, h.rec.Counts.Pending)
		if err := h.writers.Write(ctx, 0, append(notes, h.rec.note(h.topics.ledger))...); err != nil {
			return resolved, err
		}
		resolved += written
	}
	for some := range slices.Chunk(h.unfollowed, txnLetters) {
		notes := make([]*kgo.Record, len(some))
		for i, l := range some {
			target := headers.Position{Topic: l.Topic, Partition: l.Partition, Offset: l.Offset}
			notes[i] = h.entry(l.At, dlq.Entry{State: dlq.Unfollowed, Since: h.rec.Started, Target: target})
		}
		if err := h.writers.Write(ctx, 0, notes...); err != nil {
			return resolved, err
		}
		resolved += int64(len(some))
	}
	return resolved, nil
}

// derive finds the outcomes of letters that the ledger has as redriven, and the run's counts with
// them.
func (h *ownedRun) derive(ctx context.Context) ([]inflight.Verdict, Counts, error) {
	if len(h.inFlight) == 0 {
		return nil, h.rec.Counts.clone(), nil
	}
	fl := inflight.New(inflight.Counts(h.rec.Counts), h.inFlight, nil)
	w, err := startWatch(ctx, h, fl, newAlarm(h.rec), func(error) {})
	if err != nil {
		return nil, Counts{}, err
	}
	defer w.Close()
	l := newOutcomes(h, w).poll(ctx)
	return l.verdicts, Counts(fl.Counts()), l.err
}

// refailed counts letters as failed that are dead letters again although the ledger has another
// outcome. A letter that failed into a retry topic which the run may not see looks succeeded until
// then. refailed reads the dead-letter topic from the run's begin, and nothing else, so it needs no
// further permission.
func (h *ownedRun) refailed(ctx context.Context, c *Counts) error {
	topic := h.topics.dlq
	counters := map[outcome]*int64{{state: dlq.Succeeded}: &c.Succeeded, {state: dlq.Unknown}: &c.Unknown, {state: dlq.Unfollowed}: &c.Unfollowed}
	counted, known := int64(0), int64(0)
	for o, n := range counters {
		counted, known = counted+*n, known+h.outcomes[o].Len()
	}
	if counted == 0 || known == 0 {
		return nil
	}
	failed := func(err error) error {
		return fmt.Errorf("read the dead-letter topic for letters that failed again: %w", permission.Denied("READ", "topic", topic, err))
	}
	adm, err := client.NewAdmin(h.r.cfg.Kafka...)
	if err != nil {
		return err
	}
	defer adm.Close()
	to, err := bounds.Ends(ctx, adm, []string{topic})
	if err != nil {
		return failed(err)
	}
	var ranges []dlq.Range
	for p, end := range to[topic] {
		// from 0 in a partition that was added since
		ranges = append(ranges, dlq.Range{Partition: p, From: h.rec.Watch[topic][p], Until: end})
	}
	for r, err := range dlq.Records(ctx, topic, ranges, h.r.cfg.Kafka...) {
		if err != nil {
			return failed(err)
		}
		// other damage to the headers does not matter
		m, _ := headers.Parse(r.Headers)
		from := m.Redrive.From
		if m.Redrive.ID != h.rec.ID || from.Topic != topic {
			continue
		}
		for o, n := range counters {
			if h.outcomes[o].Remove(letters.At(from.Partition, from.Offset)) && *n > 0 {
				*n--
				c.add(dlq.Entry{State: dlq.Failed, Class: cmp.Or(m.Class, string(m.Reason))})
			}
		}
	}
	return nil
}
