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
func (run *ownedRun) writeOutcomes(ctx context.Context, verdicts []inflight.Verdict) (resolved int64, err error) {
	run.rec.Edit = editRecord{} // kept by an older version that ended the run
	pending := letters.Set{}
	for _, l := range run.inFlight {
		pending.Add(l.At)
	}
	for some := range slices.Chunk(verdicts, loadStart/(2*entryBytes)) {
		var records []*kgo.Record
		written := int64(0)
		for _, v := range some {
			if pending.Remove(v.Letter) {
				records = append(records, run.applyVerdict(v)...)
				written++
				run.rec.Counts.add(v.Entry)
			}
		}
		run.rec.Counts.Pending = pending.Len()
		run.rec.Counts.Retrying = min(run.rec.Counts.Retrying, run.rec.Counts.Pending)
		if err := run.writers.Write(ctx, 0, append(records, run.rec.ledgerRecord(run.topics.ledger))...); err != nil {
			return resolved, err
		}
		resolved += written
	}
	for some := range slices.Chunk(run.unfollowed, txnLetters) {
		records := make([]*kgo.Record, len(some))
		for i, l := range some {
			target := headers.Position{Topic: l.Topic, Partition: l.Partition, Offset: l.Offset}
			records[i] = run.entry(l.At, dlq.Entry{State: dlq.Unfollowed, Since: run.rec.Started, Target: target})
		}
		if err := run.writers.Write(ctx, 0, records...); err != nil {
			return resolved, err
		}
		resolved += int64(len(some))
	}
	return resolved, nil
}

// derive finds the outcomes of letters that the ledger has as redriven, and the run's counts with
// them.
func (run *ownedRun) derive(ctx context.Context) ([]inflight.Verdict, Counts, error) {
	if len(run.inFlight) == 0 {
		return nil, run.rec.Counts.clone(), nil
	}
	fl := inflight.New(inflight.Counts(run.rec.Counts), run.inFlight, nil)
	w, err := startWatch(ctx, run, fl, newAlarm(run.rec), func(error) {})
	if err != nil {
		return nil, Counts{}, err
	}
	defer w.Close()
	result := newOutcomes(run, w).poll(ctx)
	return result.verdicts, Counts(fl.Counts()), result.err
}

// refailed counts letters as failed that are dead letters again although the ledger has another
// outcome. A letter that failed into a retry topic which the run may not see looks succeeded until
// then. refailed reads the dead-letter topic from the run's begin, and nothing else, so it needs no
// further permission.
func (run *ownedRun) refailed(ctx context.Context, c *Counts) error {
	topic := run.topics.dlq
	counters := map[outcome]*int64{{state: dlq.Succeeded}: &c.Succeeded, {state: dlq.Unknown}: &c.Unknown, {state: dlq.Unfollowed}: &c.Unfollowed}
	counted, known := int64(0), int64(0)
	for o, n := range counters {
		counted, known = counted+*n, known+run.outcomes[o].Len()
	}
	if counted == 0 || known == 0 {
		return nil
	}
	failed := func(err error) error {
		return fmt.Errorf("read the dead-letter topic for letters that failed again: %w", permission.Denied("READ", "topic", topic, err))
	}
	adm, err := client.NewAdmin(run.r.cfg.Kafka...)
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
		ranges = append(ranges, dlq.Range{Partition: p, From: run.rec.Watch[topic][p], Until: end})
	}
	for r, err := range dlq.Records(ctx, topic, ranges, run.r.cfg.Kafka...) {
		if err != nil {
			return failed(err)
		}
		// other damage to the headers does not matter
		m, _ := headers.Parse(r.Headers)
		from := m.Redrive.From
		if m.Redrive.ID != run.rec.ID || from.Topic != topic {
			continue
		}
		for o, n := range counters {
			if run.outcomes[o].Remove(letters.At(from.Partition, from.Offset)) && *n > 0 {
				*n--
				c.add(dlq.Entry{State: dlq.Failed, Class: cmp.Or(m.Class, string(m.Reason))})
			}
		}
	}
	return nil
}
