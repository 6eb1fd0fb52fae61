package redrive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/internal/letters"
	"github.com/sidingkafka/siding/redrive/internal/txn"
)

// claim begins a run of a plan. The order is what makes two operators at a time one run: the ids
// are initialised, then the ledger is read to its end, and only then the claim is written, which
// the broker refuses if somebody initialised the ids meanwhile. The fence is raised before: the
// reading waits for what is open in the ledger. See DESIGN.md, "Claim".
func (r *Redriver) claim(ctx context.Context, p *Plan, pace Pace, on func(Event)) (*ownedRun, error) {
	t, l := p.topics, newLoad(r.cfg.MaxBufferedBytes/2)
	for try := 1; ; try++ {
		w, err := txn.Open(ctx, r.cfg.Kafka, t.dlq, l.timeout)
		if err != nil {
			return nil, within(t.dlq, err)
		}
		h, err := r.tryClaim(ctx, p, pace, w, l)
		if err == nil {
			return h, nil
		}
		w.Close()
		if !errors.Is(err, txn.ErrUncertain) {
			return nil, within(t.dlq, err)
		}
		if h != nil { // its claim may stand, and who begins again would meet it as another's
			again, err := r.retake(ctx, h, err, on)
			if err == nil || !errors.Is(err, ErrNoRun) && !errors.Is(err, ErrTaken) {
				return again, within(t.dlq, err)
			}
		}
		// Another process initialised the ids: their claim stands, or is about to. Or they gave up.
		pause(ctx, standBack(try))
		if err := r.stillFree(ctx, p); err != nil {
			return nil, within(t.dlq, err)
		}
	}
}

// standBack is a random time before a process initialises the ids again that another process has
// initialised meanwhile. To initialise them makes all others begin again. So processes that began
// at the same time have to come at different times, the farther apart the more of them there are.
// Each try has twice the time of the one before, as on an Ethernet.
func standBack(try int) time.Duration {
	const least, most = 100 * time.Millisecond, 8 * time.Second
	return least + rand.N(min(time.Second<<min(try-1, 10), most))
}

// stillFree refuses a plan that has come too late, before the ids are initialised again: that would
// fence the process that has a run by now. A ledger that cannot be read for a while says nothing;
// something in it is open.
func (r *Redriver) stillFree(ctx context.Context, p *Plan) error {
	first, cancel := context.WithTimeout(ctx, peekFenced)
	defer cancel()
	ledger, err := r.readLedger(first, p.topics, nil)
	switch {
	case first.Err() != nil:
		return ctx.Err()
	case err != nil:
		return err
	}
	return refuseUnfinished(ledger)
}

// tryClaim is one try of it. Of a claim that may stand or not it returns the run with the error.
func (r *Redriver) tryClaim(ctx context.Context, p *Plan, pace Pace, w *txn.Writers, l *load) (*ownedRun, error) {
	t := p.topics
	if err := w.Fence(ctx, r.cfg.Kafka, t.ledger, t.ledger); err != nil {
		return nil, err
	}
	if err := w.Fence(ctx, r.cfg.Kafka, t.ledger, slices.Collect(maps.Keys(p.Targets))...); err != nil {
		return nil, err
	}
	orphans := redrivenElsewhere{}
	ledger, err := r.ledgerFor(ctx, p, orphans.observe)
	if err != nil {
		return nil, err
	}
	left, skipped := p.unresolved(ledger)
	if left.Len() == 0 {
		return nil, &RefusedError{Topic: t.dlq, Reason: RefusedNothing, Detail: "all letters of the plan are resolved by now"}
	}
	watch, ids, err := watchFrom(ctx, r.cfg.Kafka, t, groupsOf(p))
	if err != nil {
		return nil, err
	}
	rec := r.newRecord(p, pace)
	rec.TopicID, rec.Watch, rec.WatchIDs, rec.Counts.Skipped = idText(ledger.TopicID()), watch, ids, skipped
	pieces := piecesOf(p.chosen, t.ledger, p.ID)
	rec.Pieces = len(pieces)
	h := &ownedRun{r: r, topics: t, rec: rec, writers: w, load: l, topicID: ledger.TopicID(), left: left}
	if err := h.noteDuplicates(ctx, p, ledger); err != nil {
		return h, err
	}
	err = h.declare(ctx, slices.Concat(orphans.of(ledger), pieces))
	return h, err
}

// newRecord is a run as it begins, by its plan.
func (r *Redriver) newRecord(p *Plan, pace Pace) *record {
	now := time.Now()
	rec := &record{
		V: runVersion, ID: p.ID, State: Canary, By: r.cfg.By, Why: r.cfg.Why, Owner: r.owner, Token: token(8), Started: now, Heartbeat: now,
		Target: p.Selection.Target, Tiers: p.tiers, Edit: editRecord{p.Selection.Edit}, Pace: pace, Groups: groupsOf(p), Classes: classesOf(p),
	}
	rec.Counts.Selected = p.chosen.Len()
	if n, _ := p.unfollowed(); n == p.Letters {
		rec.Pace.Canary = 0 // it would have no outcome
	}
	if rec.Pace.Canary == 0 {
		rec.State = Sending
	}
	return rec
}

// redrivenElsewhere are pieces of selections, by run.
type redrivenElsewhere map[string][]string

// observe records which pieces of selections a ledger has.
func (s redrivenElsewhere) observe(n *dlq.LedgerRecord) {
	id, _, ok := strings.Cut(n.Run, "/selection/")
	_, hearsay := n.DiscardReport()
	switch {
	case !ok || hearsay:
	case n.Record.Value != nil:
		s[id] = append(s[id], n.Run)
	default:
		s[id] = slices.DeleteFunc(s[id], func(name string) bool { return name == n.Run })
	}
}

// of are the records that remove pieces of selections without a claim, while no run is unfinished.
// A process that was fenced before its claim, or crashed, left them, and compaction keeps them.
func (s redrivenElsewhere) of(ledger *dlq.Ledger) (gone []*kgo.Record) {
	for _, names := range s {
		for _, name := range names {
			gone = append(gone, dlq.RunRecord(ledger.Name(), name, nil))
		}
	}
	return gone
}

// take takes over a run from the process that has it, with what the ledger knows of it. change is
// called again if another process came in between, each time with the run as the ledger has it
// then.
func (r *Redriver) take(ctx context.Context, t *topics, id string, l *load, change func(*ownedRun) error) (*ownedRun, error) {
	for try := 1; ; try++ {
		w, err := txn.Open(ctx, r.cfg.Kafka, t.dlq, l.timeout)
		if err != nil {
			return nil, within(t.dlq, err)
		}
		h, err := r.tryTake(ctx, t, id, change, w)
		if err == nil {
			h.load = l
			return h, nil
		}
		w.Close()
		if !errors.Is(err, txn.ErrUncertain) {
			return nil, within(t.dlq, err)
		}
		pause(ctx, standBack(try))
		if err := r.stillMine(ctx, t, id, change); err != nil {
			return nil, within(t.dlq, err)
		}
	}
}

// stillMine checks in the ledger whether a run may still be taken, before the ids are initialised
// again.
func (r *Redriver) stillMine(ctx context.Context, t *topics, id string, change func(*ownedRun) error) error {
	first, cancel := context.WithTimeout(ctx, peekFenced)
	defer cancel()
	h, err := r.read(first, t, id)
	if first.Err() != nil {
		return ctx.Err()
	} else if err != nil {
		return err
	}
	return change(h)
}

func (r *Redriver) tryTake(ctx context.Context, t *topics, id string, change func(*ownedRun) error, w *txn.Writers) (*ownedRun, error) {
	if err := w.Fence(ctx, r.cfg.Kafka, t.ledger, t.ledger); err != nil {
		return nil, err
	}
	h, err := r.read(ctx, t, id)
	if err != nil {
		return nil, err
	}
	h.writers = w
	if err := change(h); err != nil {
		return nil, err
	}
	if err := w.Fence(ctx, r.cfg.Kafka, t.ledger, h.rec.targets()...); err != nil {
		return nil, err
	}
	return h, w.Write(ctx, 0, h.rec.note(t.ledger))
}

// read reads what the ledger knows of a run: its selection less what has an entry, and what was
// sent without an outcome.
func (r *Redriver) read(ctx context.Context, t *topics, id string) (*ownedRun, error) {
	h := &ownedRun{r: r, topics: t}
	entries, heard := newLedgerView(), letters.Set{}
	pieces := map[string][]byte{}
	var bad error
	ledger, err := r.readLedger(ctx, t, func(n *dlq.LedgerRecord) {
		switch run, hearsay := n.DiscardReport(); {
		case hearsay && run != id:
		case hearsay && n.Entry.State == dlq.Discarded:
			heard.Add(letters.At(n.Record.Partition, n.Letter))
		case hearsay:
			heard.Remove(letters.At(n.Record.Partition, n.Letter))
		case n.Run == id && n.Record.Value != nil:
			h.rec, bad = parseRecord(n.Record.Value)
		case isPiece(n.Run, id):
			pieces[n.Run] = n.Record.Value
		case n.Run == "" && n.Err == nil && n.Letter >= 0:
			at := letters.At(n.Record.Partition, n.Letter)
			if n.Entry.Run == id {
				entries.add(at, &n.Entry)
			} else {
				entries.clear(at)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	if bad != nil {
		return nil, unreadable(t.ledger, id, bad)
	}
	if h.rec == nil {
		return nil, fmt.Errorf("run %s: %w", id, ErrNoRun)
	}
	h.topicID, h.skipped = ledger.TopicID(), h.rec.Counts.Skipped
	if isOther(h.rec.topicID(), h.topicID) {
		h.topicID, h.recreated = h.rec.topicID(), true
		return h, nil // the ledger passes over what it says of that topic
	}
	entries.confirm(heard)
	h.skipsReported = entries.states
	if h.rec.State.Finished() {
		h.recountGroups(entries)
		return h, nil
	}
	if h.left, err = joinPieces(id, h.rec.Pieces, pieces); err != nil {
		return nil, unreadable(t.ledger, id, err)
	}
	h.recount(entries, ledger)
	return h, nil
}
