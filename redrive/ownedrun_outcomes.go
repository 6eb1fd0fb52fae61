package redrive

import (
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/redrive/internal/bounds"
	"github.com/sidingkafka/siding/redrive/internal/inflight"
	"github.com/sidingkafka/siding/redrive/internal/letters"
	"github.com/sidingkafka/siding/redrive/internal/permission"
	"github.com/sidingkafka/siding/redrive/internal/tail"
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
	fl := inflight.New(inflight.Counts(h.rec.Counts), h.inFlight)
	w, err := startWatch(ctx, h, fl, newAlarm(h.rec), func(error) {})
	if err != nil {
		return nil, Counts{}, err
	}
	defer w.Close()
	l := newOutcomes(h, w).poll(ctx)
	return l.verdicts, Counts(fl.Counts()), l.err
}

// refailed counts letters as failed that are dead letters again. It reads the dead-letter topic
// from the run's begin, and nothing else, so it needs no further permission.
func (h *ownedRun) refailed(ctx context.Context, c *Counts) error {
	seen := &refailed{run: h.rec.ID, topic: h.topics.dlq, reported: h.skipsReported}
	if c.Succeeded+c.Unknown == 0 || seen.reported[dlq.Succeeded].Len()+seen.reported[dlq.Unknown].Len() == 0 {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cl, err := client.New(append(slices.Clip(h.r.cfg.Kafka), kgo.WithContext(context.WithoutCancel(ctx)))...)
	if err != nil {
		return err
	}
	to, err := bounds.Ends(ctx, kadm.NewClient(cl), []string{h.topics.dlq})
	if err != nil {
		cl.Close()
		return fmt.Errorf("read the dead-letter topic for letters that failed again: %w", permission.Denied("READ", "topic", h.topics.dlq, err))
	}
	from := bounds.Positions{}
	for p := range to[h.topics.dlq] {
		// 0 for a partition that was added since
		from.Set(h.topics.dlq, p, h.rec.Watch[h.topics.dlq][p])
	}
	t := tail.New(cl, seen.observe, func(err error) {
		if permission.IsDenied(err) {
			cancel(permission.Denied("READ", "topic", h.topics.dlq, err))
		}
	})
	t.Add(from)
	t.Start(ctx)
	err = t.WaitUntil(ctx, to)
	t.Close()
	if err != nil {
		return fmt.Errorf("read the dead-letter topic for letters that failed again: %w", err)
	}
	for i, e := range seen.found {
		if n := c.of(seen.before[i]); *n > 0 {
			*n--
			c.add(e)
		}
	}
	return nil
}

// refailed collects letters of a run that are dead letters again although the ledger has another
// outcome. A letter that failed into a retry topic which the run may not see looks succeeded until
// then.
type refailed struct {
	run, topic string
	// recorded outcomes; observe removes letters that it has found
	reported map[dlq.State]letters.Set

	found  []dlq.Entry // the actual outcomes
	before []dlq.State // the recorded outcome for each of found
}

func (r *refailed) observe(rec *kgo.Record) {
	// other damage to the headers does not matter
	m, _ := headers.Parse(rec.Headers)
	from := m.Redrive.From
	if m.Redrive.ID != r.run || from.Topic != r.topic {
		return
	}
	class := m.Class
	if class == "" {
		class = string(m.Reason)
	}
	for _, s := range [...]dlq.State{dlq.Succeeded, dlq.Unknown} {
		if r.reported[s].Remove(letters.At(from.Partition, from.Offset)) {
			r.found, r.before = append(r.found, dlq.Entry{State: dlq.Failed, Class: class}), append(r.before, s)
		}
	}
}
