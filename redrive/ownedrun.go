package redrive

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/internal/inflight"
	"github.com/sidingkafka/siding/redrive/internal/letters"
	"github.com/sidingkafka/siding/redrive/internal/txn"
)

// ownedRun is a run that this process has: what the ledger says of it, and the producers with which
// it writes.
type ownedRun struct {
	r       *Redriver
	topics  *topics
	rec     *record
	writers *txn.Writers
	load    *load
	topicID [16]byte

	left    letters.Set      // what is still to be sent
	skipped map[string]int64 // as the run itself says
	// the dead-letter topic is another one by now: nothing else is known
	recreated bool
	abortErr  *FailedAgainError // it was to abort, and could not write that down
	inFlight  []inflight.Sent   // what was sent, and has no outcome
	// of which no outcome will be known, and the ledger does not say so
	unfollowed []inflight.Sent
	// what else the ledger says of its letters, but for those that failed
	skipsReported map[dlq.State]letters.Set
}

// noteDuplicates records the duplicates of letters that have no entry yet. A duplicate is open
// again when its letter has expired, unless an entry names its letter. If the letter was resolved
// since the plan, its duplicate may be a later failure.
func (h *ownedRun) noteDuplicates(ctx context.Context, p *Plan, ledger *dlq.Ledger) error {
	const most = 10_000 // an entry takes some hundred bytes
	var entries []*kgo.Record
	for i, d := range p.duplicates {
		outdated := p.chosen.Has(letters.At(d.Partition, d.letter)) && ledger.State(d.Partition, d.letter).Resolves()
		if !outdated && !ledger.State(d.Partition, d.Offset).Resolves() {
			entries = append(entries, h.entry(d.Place, dlq.Entry{State: dlq.Duplicate, Target: letters.At(d.Partition, d.letter).In(h.topics.dlq)}))
		}
		if len(entries) == most || i == len(p.duplicates)-1 {
			if err := h.write(ctx, 0, entries); err != nil {
				return err
			}
			entries = entries[:0]
		}
	}
	return nil
}

// declare writes the claim, after the records that it needs: a claim without its selection could
// not be resumed, and a resumed run does not look for duplicates. Of a large selection these are
// several transactions, with the claim in the last one.
func (h *ownedRun) declare(ctx context.Context, notes []*kgo.Record) error {
	return h.write(ctx, 0, append(notes, h.rec.note(h.topics.ledger)))
}

// write writes notes in as many transactions as they take. The first is written by the producer
// that is named, and then they take turns.
func (h *ownedRun) write(ctx context.Context, which int, notes []*kgo.Record) error {
	for len(notes) > 0 {
		n, bytes := h.load.some(notes)
		began := time.Now()
		if err := h.writers.Write(ctx, which, notes[:n]...); err != nil {
			return h.load.overdue(attempt{began: began, records: n, bytes: bytes}, err)
		}
		notes, which = notes[n:], 1-which
	}
	return nil
}

// recount counts anew what became of the letters of a run that is unfinished: the entries came with
// the copies, and what the run says of itself is some seconds old.
func (h *ownedRun) recount(entries *ledgerView, ledger *dlq.Ledger) {
	h.rec.Counts = Counts{Selected: h.rec.Counts.Selected}
	entries.each(func(at letters.Place, e dlq.Entry) {
		if h.left.Remove(at) { // what somebody says of others is not believed
			h.count(at, e)
		}
	})
	for at := range h.left.Clone().All() { // resolved by others
		if ledger.State(at.Partition, at.Offset).Resolves() {
			h.rec.Counts.addSkipped(SkippedResolved)
			h.left.Remove(at)
		}
	}
	h.rec.Counts.Pending = int64(len(h.inFlight))
	for why, n := range h.rec.Counts.Skipped {
		if h.skipped == nil {
			h.skipped = map[string]int64{}
		}
		h.skipped[why] = max(h.skipped[why], n)
	}
}

// recountGroups adds to the counts of a finished run what became known since: that consumers
// discarded pending letters. Later runs may have redriven its letters again, so the entries alone
// do not count.
func (h *ownedRun) recountGroups(entries *ledgerView) {
	c := &h.rec.Counts
	discarded := int64(0)
	entries.each(func(at letters.Place, e dlq.Entry) {
		switch {
		case e.State == dlq.Redriven && h.followsSent():
			h.inFlight = append(h.inFlight, inflight.SentTo(at, "", e.Target))
		case e.State == dlq.Redriven:
			h.unfollowed = append(h.unfollowed, inflight.SentTo(at, "", e.Target))
		case e.State == dlq.Discarded:
			discarded++
		}
	})
	c.Discarded = max(c.Discarded, min(discarded, c.Discarded+c.Pending))
	c.Pending, c.Retrying = int64(len(h.inFlight)), 0
}

// count counts an entry about a letter of the run.
func (h *ownedRun) count(at letters.Place, e dlq.Entry) {
	c := &h.rec.Counts
	switch e.State {
	case dlq.Duplicate:
	case dlq.Expired:
		c.addSkipped(SkippedExpired)
	case dlq.Unfollowed:
		c.Sent++
		c.Unfollowed++
	case dlq.Redriven:
		c.Sent++
		if !h.followsSent() {
			c.Unfollowed++
			return
		}
		h.inFlight = append(h.inFlight, inflight.SentTo(at, "", e.Target))
	default:
		c.Sent++
		c.add(e)
	}
}

// entry is the ledger's entry about a letter of the run.
func (h *ownedRun) entry(at letters.Place, e dlq.Entry) *kgo.Record {
	e.TopicID, e.Run, e.At, e.By, e.Why = h.topicID, h.rec.ID, time.Now(), h.rec.By, h.rec.Why
	return e.Record(h.topics.ledger, at.Partition, at.Offset)
}

// applyVerdict is the ledger's entry about the outcome of a letter. It removes the consumer's
// discard report, which is not needed any more. The letter is resolved since the claim; when each
// letter was sent is not kept.
func (h *ownedRun) applyVerdict(v inflight.Verdict) []*kgo.Record {
	v.Entry.Since = h.rec.Started
	notes := []*kgo.Record{h.entry(v.Letter, v.Entry)}
	if v.Reported {
		unsaid := dlq.Entry{Run: h.rec.ID}
		notes = append(notes, unsaid.DiscardReport(h.topics.ledger, v.Letter.Partition, v.Letter.Offset))
	}
	return notes
}

// What becomes of a letter is told by the committed offsets of its group, and by what that writes
// into the siblings of the source if it fails again. On any other topic it fails into that topic's
// siblings, if anybody reads it at all, and of a letter without a group nobody knows whose offsets
// count. Such letters are not followed: the ledger says that of them, which settles them, and
// nothing waits for more.

// follows reports whether it will be known what becomes of a letter of a group.
func (h *ownedRun) follows(group string) bool {
	return h.rec.toTier() || h.rec.Target.Topic == h.topics.source && group != ""
}

// followsSent reports that of a letter of which an entry is known that says that it was sent, and
// not whose it is. Such an entry is of a letter that is followed, unless a version wrote it that
// told of all alike: there each may be one without a group, where there are some.
func (h *ownedRun) followsSent() bool {
	return h.rec.toTier() || h.rec.Target.Topic == h.topics.source && h.rec.Groupless == 0
}

// sameTopic makes sure that the dead-letter topic is the one that the run is about.
func (h *ownedRun) sameTopic(found kadm.TopicDetails) error {
	if d, ok := found[h.topics.dlq]; ok && d.Err == nil && isOther(h.topicID, d.ID) {
		return ErrTopicRecreated
	}
	return nil
}
