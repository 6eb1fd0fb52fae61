package redrive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/redrive/internal/permission"
	"github.com/sidingkafka/siding/redrive/internal/resolved"
)

// Plan freezes a selection. It reads the ledger and the dead-letter topic once, up to their present
// ends, and finds the targets of the letters. It changes nothing. A *[RefusedError] gives the
// reason for which a run would not begin; a *[DeniedError] names a missing permission. That a group
// has no members is a warning of the plan, and a refusal of [Redriver.Run] without Target.Wait.
func (r *Redriver) Plan(ctx context.Context, s Selection) (*Plan, error) {
	if err := s.validate(); err != nil {
		return nil, fmt.Errorf("redrive: %s: %w", s.Topic, err)
	}
	t, err := r.topicsOf(s.Topic, s.Filter.Groups)
	if err != nil {
		return nil, err
	}
	toTier, err := t.isTier(s.Target)
	if err != nil {
		return nil, within(t.dlq, err)
	}
	cl, err := client.New(r.cfg.Kafka...)
	if err != nil {
		return nil, fmt.Errorf("redrive: %w", err)
	}
	defer cl.Close()
	p, err := newPlan(ctx, cl, s, t, toTier)
	if err != nil {
		return nil, within(t.dlq, err)
	}
	ledger, err := r.readLedger(ctx, t, nil)
	if err != nil {
		return nil, fmt.Errorf("redrive: %w", p.allLacking(ctx, cl, err))
	}
	if ledger.Missing() {
		return nil, fmt.Errorf("redrive: %s has no ledger: create the topic %s, compacted, with as many partitions as %s", t.dlq, t.ledger, t.dlq)
	}
	if err := refuseUnfinished(ledger); err != nil {
		return nil, err
	}
	p.topicID, p.values = ledger.TopicID(), r.cfg.Values
	fits := s.Filter
	fits.Match = func(l *dlq.Letter) bool {
		return (s.Filter.Match == nil || s.Filter.Match(l)) && p.take(ctx, l)
	}
	for l, err := range ledger.Letters(ctx, fits, dlq.Cursor{}, dlq.WithCopies) {
		if err != nil {
			return nil, fmt.Errorf("redrive: %w", p.allLacking(ctx, cl, permission.Denied("READ", "topic", t.dlq, err)))
		}
		switch l.State {
		case dlq.Duplicate:
			p.addDuplicate(l)
		case dlq.Unknown:
			p.unknown++
		}
	}
	p.unread = p.unreadIn(ledger)
	if p.Letters == 0 {
		p.resolved = resolved.Describe(ctx, ledger, &s.Filter)
	}
	if err := p.resolveGroups(ctx, cl); err != nil {
		return nil, err
	}
	if err := refuseLarge(t, r.newRecord(p, &RunOptions{})); err != nil {
		return nil, err
	}
	return p, nil
}

// ledgerFor reads the ledger for the run of a plan. It refuses the plan if another run is
// unfinished, the plan was run before, or the letters are gone.
func (r *Redriver) ledgerFor(ctx context.Context, p *Plan, see func(*dlq.LedgerRecord)) (*dlq.Ledger, error) {
	t := p.topics
	ledger, err := r.readLedger(ctx, t, see)
	if err != nil {
		return nil, err
	}
	if err := refuseUnfinished(ledger); err != nil {
		return nil, err
	}
	if _, begun := ledger.Runs()[p.ID]; begun { // a plan makes one run
		return nil, t.refuse(RefusedNothing, "the plan was run already, as %s/%s: plan again", t.dlq, p.ID)
	}
	if isOther(p.topicID, ledger.TopicID()) {
		return nil, t.refuse(RefusedNothing, "the dead-letter topic was recreated since the plan was made, or the plan is of another cluster; the letters of the plan are not here: plan again")
	}
	return ledger, nil
}

// adopt returns the plan with the topics of this Redriver, if another process has made it.
func (r *Redriver) adopt(p *Plan) (*Plan, error) {
	if p.topics != nil {
		return p, nil
	}
	t, err := r.topicsOf(p.Selection.Topic, p.groups())
	if err != nil {
		return nil, err
	}
	if p.stored == nil {
		return nil, errors.New("redrive: the plan is empty: make it by Redriver.Plan")
	}
	if source, ledger := p.names(); source != t.source || ledger != t.ledger {
		return nil, t.refuse(RefusedNaming, "the plan has the source %s and the ledger %s, and by this naming they are %s and %s: give the naming with which the plan was made", source, ledger, t.source, t.ledger)
	}
	own := *p // the caller owns the plan
	own.topics = t
	own.toTier, err = t.isTier(p.Selection.Target)
	return &own, err
}

// refuseLarge refuses a run whose record is too large for the ledger.
func refuseLarge(t *topics, r *record) error {
	if n := len(r.ledgerRecord(t.ledger).Value); n > maxRecord {
		return t.refuse(RefusedLarge, "the run's record in %s would have %d bytes, and %d are the most: it has an edit of %d bytes, and %d bytes about classes: select letters of fewer classes, or edit less",
			t.ledger, n, maxRecord, len(r.Edit.Patch)+len(r.Edit.Value), len(r.ClassHashes))
	}
	return nil
}

// newRecord returns a plan's run in its first state.
func (r *Redriver) newRecord(p *Plan, o *RunOptions) *record {
	now := time.Now()
	rec := &record{
		V: runVersion, ID: p.ID, State: Canary, By: o.By, Why: o.Why, Owner: r.owner(o.By), Epochs: p.epochs, Token: token(8), Started: now, Heartbeat: now,
		Target: p.Selection.Target, Tiers: p.tiers, MaxAttempts: p.Selection.MaxAttempts, Edit: editRecord{p.Selection.Edit}, Pace: o.Pace, Groups: p.groups(),
	}
	rec.setClasses(slices.Sorted(maps.Keys(p.ByClass)))
	rec.Counts.Selected = p.chosen.Len()
	if !p.toTier && p.Selection.Target.Topic != p.topics.source {
		rec.Pace.Canary = 0 // its letters fail into another dead-letter topic
	}
	if rec.Pace.Canary == 0 {
		rec.State = Sending
	}
	return rec
}
