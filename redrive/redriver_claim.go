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
	"github.com/sidingkafka/siding/internal/ledgerrecord"
	"github.com/sidingkafka/siding/redrive/internal/letters"
	"github.com/sidingkafka/siding/redrive/internal/txn"
)

// claim begins a run of a plan. Its order makes two concurrent claims one run. It initialises the
// ids, reads the ledger to its end, and only then writes the claim. The broker refuses the claim if
// another process initialised the ids meanwhile. The fence comes before the reading, because an
// open transaction in the ledger blocks the reading. See DESIGN.md, "Claim".
func (r *Redriver) claim(ctx context.Context, p *Plan, o *RunOptions) (*ownedRun, error) {
	t, l, on := p.topics, newLoad(r.cfg.MaxBufferedBytes/2), o.On
	return r.contend(ctx, t, l, func(w *txn.Writers) (*ownedRun, error) {
		return r.tryClaim(ctx, p, o, w, l)
	}, func(run *ownedRun, why error) (*ownedRun, error) {
		if run != nil { // its claim may be committed, and a new try would find it and be refused
			if _, expired := errors.AsType[*expiredError](why); on != nil && (expired || !txn.IsFenced(why)) {
				on(Event{Outcome: run.rec.outcome(t.dlq), Message: "the run is not claimed yet: " + why.Error()})
			}
			again, err := r.retake(ctx, run, why, on)
			if err == nil || !errors.Is(err, ErrNoRun) && !errors.Is(err, ErrTaken) {
				return again, err
			}
		}
		first, cancel := context.WithTimeout(ctx, peekFenced)
		defer cancel()
		ledger, err := r.readLedger(first, t, nil)
		switch {
		case first.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, err
		}
		return nil, refuseUnfinished(ledger)
	})
}

// contend lets try take a run with newly initialised ids. If another process initialised them
// meanwhile, that process has claimed the run, is about to, or stopped trying. To initialise the
// ids again would fence it. So contend waits, and calls again with the result of try before it
// tries again. again returns the run if it has taken it, and an error if the other process has.
func (r *Redriver) contend(ctx context.Context, t *topics, l *load, try func(*txn.Writers) (*ownedRun, error),
	again func(run *ownedRun, why error) (*ownedRun, error),
) (*ownedRun, error) {
	for n := 1; ; n++ {
		w, err := txn.Open(ctx, r.cfg.Kafka, t.dlq, l.timeout, l.large)
		if err != nil {
			return nil, err
		}
		run, err := try(w)
		if err == nil {
			return run, nil
		}
		w.Close()
		if !errors.Is(err, txn.ErrUncertain) {
			return nil, err
		}
		pause(ctx, standBack(n))
		if run, err = again(run, err); run != nil || err != nil {
			return run, err
		}
	}
}

// standBack returns a random wait before a process initialises the ids again. Initialising them
// makes all other processes begin again, so competing processes must spread. The range doubles with
// each try, as on an Ethernet.
func standBack(try int) time.Duration {
	const least, most = 100 * time.Millisecond, 8 * time.Second
	return least + rand.N(min(time.Second<<min(try-1, 10), most))
}

// tryClaim is one try of claim. After an unanswered claim it returns the run and the error.
func (r *Redriver) tryClaim(ctx context.Context, p *Plan, o *RunOptions, w *txn.Writers, l *load) (*ownedRun, error) {
	t := p.topics
	if err := w.Fence(ctx, r.cfg.Kafka, t.ledger, t.ledger); err != nil {
		return nil, err
	}
	if err := w.Fence(ctx, r.cfg.Kafka, t.ledger, slices.Collect(maps.Keys(p.Targets))...); err != nil {
		return nil, err
	}
	orphans := map[string]bool{}
	ledger, err := r.ledgerFor(ctx, p, func(n *dlq.LedgerRecord) {
		if _, _, report := ledgerrecord.DiscardReportOf(n.Run); !report && strings.Contains(n.Run, selectionKey) {
			orphans[n.Run] = n.Record.Value != nil
		}
	})
	if err != nil {
		return nil, err
	}
	left, skipped := p.unresolved(ledger)
	if left.Len() == 0 {
		return nil, t.refuse(RefusedNothing, "all letters of the plan are resolved by now%s", p.describe(ctx, ledger))
	}
	watch, ids, err := watchFrom(ctx, r.cfg.Kafka, t, p.groups())
	if err != nil {
		return nil, err
	}
	if err := o.vetoed(ctx); err != nil {
		return nil, err
	}
	rec := r.newRecord(p, o)
	rec.TopicID, rec.Watch, rec.WatchIDs, rec.Counts.Skipped = idText(ledger.TopicID()), watch, ids, skipped
	pieces := piecesOf(p.chosen, t.ledger, p.ID)
	rec.Pieces = len(pieces)
	run := &ownedRun{r: r, topics: t, rec: rec, writers: w, load: l, topicID: ledger.TopicID(), left: left}
	if err := refuseLarge(t, rec); err != nil {
		return nil, err
	}
	if err := run.recordDuplicates(ctx, p, ledger); err != nil {
		return run, err
	}
	// No other run is unfinished, so these pieces belong to a process that was fenced before its
	// claim, or crashed. Compaction would keep them.
	var gone []*kgo.Record
	for name, there := range orphans {
		if there {
			gone = append(gone, ledgerrecord.Run(t.ledger, name, nil))
		}
	}
	// The selection comes before the claim. A claim without its selection could not be resumed, and
	// a resumed run does not look for duplicates. A large selection takes several transactions: the
	// claim is in the last.
	err = run.write(ctx, 0, slices.Concat(gone, pieces, []*kgo.Record{rec.ledgerRecord(t.ledger)}))
	return run, err
}

// take claims an existing run, with its progress from the ledger. change checks the run and edits
// its record. take calls change again, with the run as it is then, if another process interfered.
// If patience is not 0, take first calls change with the run that it can read within that time: a
// run that change refuses is not disturbed.
func (r *Redriver) take(ctx context.Context, t *topics, id string, l *load, patience time.Duration, change func(*ownedRun) error) (*ownedRun, error) {
	refused := func(patience time.Duration) error {
		run, err := r.peek(ctx, t, id, patience)
		if run == nil || err != nil {
			return err
		}
		return change(run)
	}
	if patience > 0 {
		if err := refused(patience); err != nil {
			return nil, err
		}
	}
	return r.contend(ctx, t, l, func(w *txn.Writers) (*ownedRun, error) {
		return r.tryTake(ctx, t, id, l, change, w)
	}, func(*ownedRun, error) (*ownedRun, error) {
		return nil, refused(peekFenced)
	})
}

// The longest reading of the ledger before the ids are initialised. After a fence the run has no
// open transaction. Otherwise the run's own open transaction may block the reading, until
// initialising the ids ends it.
const (
	peekFenced = 5 * time.Second
	peekOpen   = time.Second
)

// peek reads a run before the ids are initialised. It returns nil if it cannot read the ledger in
// time.
func (r *Redriver) peek(ctx context.Context, t *topics, id string, patience time.Duration) (*ownedRun, error) {
	first, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	run, err := r.read(first, t, id)
	if err != nil && first.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return run, err
}

func (r *Redriver) tryTake(ctx context.Context, t *topics, id string, l *load, change func(*ownedRun) error, w *txn.Writers) (*ownedRun, error) {
	if err := w.Fence(ctx, r.cfg.Kafka, t.ledger, t.ledger); err != nil {
		return nil, err
	}
	run, err := r.read(ctx, t, id)
	if err != nil {
		return nil, err
	}
	run.writers, run.load = w, l
	if err := change(run); err != nil {
		return nil, err
	}
	if err := w.Fence(ctx, r.cfg.Kafka, t.ledger, run.rec.targets()...); err != nil {
		return nil, err
	}
	return run, w.Write(ctx, 0, run.rec.ledgerRecord(t.ledger))
}

// read reads a run from the ledger: the letters without an entry, and the letters that are in
// flight.
func (r *Redriver) read(ctx context.Context, t *topics, id string) (*ownedRun, error) {
	run := &ownedRun{r: r, topics: t}
	entries, reported := newLedgerView(), letters.Set{}
	pieces := map[string][]byte{}
	var bad error
	ledger, err := r.readLedger(ctx, t, func(n *dlq.LedgerRecord) {
		switch of, _, report := ledgerrecord.DiscardReportOf(n.Run); {
		case report && of != id:
		case report && n.Entry.State == dlq.Discarded:
			reported.Add(letters.At(n.Record.Partition, n.Letter))
		case report:
			reported.Remove(letters.At(n.Record.Partition, n.Letter))
		case n.Run == id && n.Record.Value != nil:
			run.rec, bad = parseRecord(n.Record.Value)
		case strings.HasPrefix(n.Run, id+selectionKey):
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
	switch {
	case err != nil:
		return nil, err
	case bad != nil:
		return nil, unreadable(t.ledger, id, bad)
	case run.rec == nil:
		return nil, fmt.Errorf("run %s: %w", id, ErrNoRun)
	}
	run.topicID, run.skipped = ledger.TopicID(), run.rec.Counts.Skipped
	if isOther(run.rec.topicID(), run.topicID) {
		run.topicID, run.recreated = run.rec.topicID(), true
		return run, nil // the ledger skips entries of the deleted topic
	}
	entries.confirm(reported)
	run.outcomes = entries.sets
	if run.rec.State.Finished() {
		run.recountGroups(entries)
		return run, nil
	}
	if run.left, err = joinPieces(id, run.rec.Pieces, pieces); err != nil {
		return nil, unreadable(t.ledger, id, err)
	}
	run.recount(entries, ledger)
	return run, nil
}
