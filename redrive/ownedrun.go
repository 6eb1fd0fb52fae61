package redrive

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
	"github.com/sidingkafka/siding/redrive/internal/inflight"
	"github.com/sidingkafka/siding/redrive/internal/letters"
	"github.com/sidingkafka/siding/redrive/internal/txn"
)

// ownedRun is a run that this process owns: its state in the ledger, and its producers.
type ownedRun struct {
	r       *Redriver
	topics  *topics
	rec     *record
	writers *txn.Writers
	load    *load
	topicID [16]byte

	left    letters.Set      // letters that are still to be sent
	skipped map[string]int64 // as in the run's record
	// the dead-letter topic was recreated; then the other fields are not set
	recreated bool
	abortErr  *FailedAgainError // the run has to abort, and could not record it
	inFlight  []inflight.Sent   // sent letters without an outcome
	// sent letters that are not followed, without an entry that records it
	unfollowed []inflight.Sent
	// all letters with an entry
	outcomes map[outcome]letters.Set
}

// snapshot returns a copy for a goroutine beside the engine's, which changes the run.
func (run *ownedRun) snapshot() *ownedRun {
	own, rec := *run, *run.rec
	own.rec = &rec
	return &own
}

// recordDuplicates writes entries for the duplicates that have no entry yet. Without an entry, a
// duplicate would be open again once its letter has expired. A letter that was resolved since the
// plan is left out, because its duplicate may be a later failure.
func (run *ownedRun) recordDuplicates(ctx context.Context, p *Plan, ledger *dlq.Ledger) error {
	const most = 10_000 // an entry takes some hundred bytes
	for some := range slices.Chunk(p.duplicates, most) {
		var entries []*kgo.Record
		for _, d := range some {
			of := letters.At(d.Partition, d.letter)
			outdated := p.chosen.Has(of) && ledger.State(d.Partition, d.letter).Resolves()
			if !outdated && !ledger.State(d.Partition, d.Offset).Resolves() {
				entries = append(entries, run.entry(d.Place, dlq.Entry{State: dlq.Duplicate, Target: of.In(run.topics.dlq)}))
			}
		}
		if err := run.write(ctx, 0, entries); err != nil {
			return err
		}
	}
	return nil
}

// write writes ledger records in as many transactions as they need. The producer which writes the
// first, and then they take turns.
func (run *ownedRun) write(ctx context.Context, which int, records []*kgo.Record) error {
	for len(records) > 0 {
		n, bytes := run.load.some(records)
		began := time.Now()
		if err := run.writers.Write(ctx, which, records[:n]...); err != nil {
			return run.load.overdue(began, n, bytes, err)
		}
		records, which = records[n:], 1-which
	}
	return nil
}

// recount derives the counts of an unfinished run from the entries. The entries committed with the
// copies, but the counts in the run's record are some seconds old.
func (run *ownedRun) recount(entries *ledgerView, ledger *dlq.Ledger) {
	run.rec.Counts = Counts{Selected: run.rec.Counts.Selected}
	entries.each(func(at letters.Place, e dlq.Entry) {
		if run.left.Remove(at) { // entries about letters outside the selection do not count
			run.count(at, e)
		}
	})
	for at := range run.left.Clone().All() { // resolved by other processes
		if ledger.State(at.Partition, at.Offset).Resolves() {
			run.rec.Counts.addSkipped(SkippedResolved)
			run.left.Remove(at)
		}
	}
	run.rec.Counts.Pending = int64(len(run.inFlight))
	for why, n := range run.rec.Counts.Skipped {
		if run.skipped == nil {
			run.skipped = map[string]int64{}
		}
		run.skipped[why] = max(run.skipped[why], n)
	}
}

// recountGroups adds consumers' discard reports about pending letters to the counts of a finished
// run. It does not count the entries, because later runs may have redriven the letters again. So a
// letter that was pending, and is redriven no more, was discarded: by a report, which an operator
// may have revoked since to reopen the letter. Other outcomes are written together with the counts.
func (run *ownedRun) recountGroups(entries *ledgerView) {
	c, reopened := &run.rec.Counts, int64(0)
	entries.each(func(at letters.Place, e dlq.Entry) {
		switch {
		case e.State == dlq.Reopened: // while it was pending, since no consumer can have its copy
			reopened++
		case e.State == dlq.Redriven && run.followsSent():
			run.inFlight = append(run.inFlight, inflight.SentTo(at, "", e.Target))
		case e.State == dlq.Redriven:
			run.unfollowed = append(run.unfollowed, inflight.SentTo(at, "", e.Target))
		}
	})
	pending := int64(len(run.inFlight))
	if run.followsSent() {
		reopened = min(reopened, max(0, c.Pending-pending))
		c.Unknown += reopened
		c.Discarded += max(0, c.Pending-pending-reopened)
	}
	c.Pending, c.Retrying = pending, min(c.Retrying, pending)
}

// count adds an entry about a letter of the run.
func (run *ownedRun) count(at letters.Place, e dlq.Entry) {
	c := &run.rec.Counts
	switch e.State {
	case dlq.Duplicate:
	case dlq.Expired:
		c.addSkipped(SkippedExpired)
	case dlq.Unfollowed:
		c.Sent++
		c.Unfollowed++
	case dlq.Redriven:
		c.Sent++
		if !run.followsSent() {
			c.Unfollowed++
			return
		}
		run.inFlight = append(run.inFlight, inflight.SentTo(at, "", e.Target))
	default:
		c.Sent++
		c.add(e)
	}
}

// entry returns the ledger's entry about a letter of the run.
func (run *ownedRun) entry(at letters.Place, e dlq.Entry) *kgo.Record {
	e.TopicID, e.Epochs, e.Run, e.At, e.By, e.Why = run.topicID, run.rec.Epochs[at.Partition], run.rec.ID, time.Now(), run.rec.By, run.rec.Why
	return e.Record(run.topics.ledger, at.Partition, at.Offset)
}

// applyVerdict returns the entry about a letter's outcome, and a tombstone for the consumer's
// discard report, which is not needed any more. The entry's Since is the run's claim, because the
// time of sending is not kept.
func (run *ownedRun) applyVerdict(v inflight.Verdict) []*kgo.Record {
	v.Entry.Since = run.rec.Started
	records := []*kgo.Record{run.entry(v.Letter, v.Entry)}
	if v.Reported {
		records = append(records, &kgo.Record{Topic: run.topics.ledger, Partition: v.Letter.Partition, Key: ledgerrecord.DiscardReportKey(run.rec.ID, v.Letter.Offset)})
	}
	return records
}

// The outcome of a letter follows from its group's committed offsets, and from the copies that the
// group writes to the source's siblings. On another topic, failures go to that topic's siblings.
// For a letter without a group, no offsets are known. Such letters are not followed: the ledger
// records that, which resolves them.

// settled returns the letters that have an outcome, by state, but for those that failed.
func (run *ownedRun) settled() map[dlq.State]letters.Set {
	sets := map[dlq.State]letters.Set{}
	for o, set := range run.outcomes {
		if o.class == "" && o.state != dlq.Failed {
			sets[o.state] = set
		}
	}
	return sets
}

// follows reports whether the outcomes of a group's letters can be known.
func (run *ownedRun) follows(group string) bool {
	return run.rec.toTier() || run.rec.Target.Topic == run.topics.source && group != ""
}

// followsSent reports whether a letter is followed whose entry says that it was sent, but not for
// which group. Current versions write such entries only about followed letters. Earlier versions
// wrote them about all letters; then the run has Groupless letters, and each letter may be one of
// them.
func (run *ownedRun) followsSent() bool {
	return run.rec.toTier() || run.rec.Target.Topic == run.topics.source && run.rec.Groupless == 0
}

// sameTopic checks that the dead-letter topic is the run's topic.
func (run *ownedRun) sameTopic(found kadm.TopicDetails) error {
	if d, ok := found[run.topics.dlq]; ok && d.Err == nil && isOther(run.topicID, d.ID) {
		return ErrTopicRecreated
	}
	return nil
}
