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
	"github.com/sidingkafka/siding/redrive/internal/inflight"
	"github.com/sidingkafka/siding/redrive/internal/letters"
	"github.com/sidingkafka/siding/redrive/internal/permission"
)

// ownedRun is a run that this process has: what the ledger says of it, and the producers with which it writes.
type ownedRun struct {
	r       *Redriver
	topics  *topics
	rec     *record
	writers *writers
	load    *load
	topicID [16]byte

	left          letters.Set               // what is still to be sent
	skipped       map[string]int64          // as the run itself says
	recreated     bool                      // the dead-letter topic is another one by now: nothing else is known
	abortErr      *FailedAgainError         // it was to abort, and could not write that down
	inFlight      []inflight.Sent           // what was sent, and has no outcome
	unfollowed    []inflight.Sent           // of which no outcome will be known, and the ledger does not say so
	skipsReported map[dlq.State]letters.Set // what else the ledger says of its letters, but for those that failed
}

// claim begins a run of a plan. The order is what makes two operators at a time one run: the ids are initialised, then the ledger is
// read to its end, and only then the claim is written, which the broker refuses if somebody initialised the ids meanwhile. The fence is
// raised before: the reading waits for what is open in the ledger.
// See DESIGN.md, "Claim".
func (r *Redriver) claim(ctx context.Context, p *Plan, pace Pace, on func(Event)) (*ownedRun, error) {
	t, l := p.topics, newLoad(r.cfg.MaxBufferedBytes/2)
	for try := 1; ; try++ {
		w, err := openWriters(ctx, r.cfg.Kafka, t.dlq, l.timeout)
		if err != nil {
			return nil, within(t.dlq, err)
		}
		h, err := r.tryClaim(ctx, p, pace, w, l)
		if err == nil {
			return h, nil
		}
		w.close()
		if !errors.Is(err, errUncertain) {
			return nil, within(t.dlq, err)
		}
		if h != nil { // its claim may stand, and who begins again would meet it as another's
			again, err := r.retake(ctx, h, err, on)
			if err == nil || !errors.Is(err, ErrNoRun) && !errors.Is(err, ErrTaken) {
				return again, within(t.dlq, err)
			}
		}
		// Somebody else initialised the ids: their claim stands, or is about to. Or they gave up.
		pause(ctx, standBack(try))
		if err := r.stillFree(ctx, p); err != nil {
			return nil, within(t.dlq, err)
		}
	}
}

// standBack is how long it takes at random until the ids are initialised once more that somebody else has initialised meanwhile. Who
// initialises them has all others begin again, so those who began at the same time have to come at different times, and the farther
// apart the more of them there are: each try has twice the time of the one before, as on an Ethernet.
func standBack(try int) time.Duration {
	const least, most = 100 * time.Millisecond, 8 * time.Second
	return least + rand.N(min(time.Second<<min(try-1, 10), most))
}

// stillFree looks into the ledger, before the ids are initialised once more, whether the plan has come too late. To initialise them
// first would fence whoever has a run by now. Of a ledger that can't be read for a while nobody knows that: something in it is open.
func (r *Redriver) stillFree(ctx context.Context, p *Plan) error {
	first, cancel := context.WithTimeout(ctx, peekFenced)
	defer cancel()
	ledger := dlq.NewLedger(p.topics.dlq, p.topics.ledger, r.cfg.Kafka...)
	if err := ledger.Read(first, nil, nil); first.Err() != nil {
		return ctx.Err()
	} else if err != nil {
		return permission.Denied("READ", "topic", p.topics.ledger, err)
	}
	return refuseUnfinished(ledger)
}

// tryClaim is one try of it. Of a claim that may stand or not it returns the run with the error.
func (r *Redriver) tryClaim(ctx context.Context, p *Plan, pace Pace, w *writers, l *load) (*ownedRun, error) {
	t := p.topics
	if err := fence(ctx, r.cfg.Kafka, w, t.ledger, t.ledger); err != nil {
		return nil, err
	}
	if err := fence(ctx, r.cfg.Kafka, w, t.ledger, slices.Collect(maps.Keys(p.Targets))...); err != nil {
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

// unresolved are the letters of a plan that are still open, and how many are not.
func (p *Plan) unresolved(ledger *dlq.Ledger) (left letters.Set, skipped map[string]int64) {
	left, skipped = letters.Set{}, map[string]int64{}
	for at := range p.chosen.All() {
		if ledger.State(at.Partition, at.Offset).Resolves() {
			skipped[SkippedResolved]++
		} else {
			left.Add(at)
		}
	}
	return left, skipped
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

// observe takes down what a ledger has of a selection.
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

// of are the records that take away what nobody needs, where no run is unfinished: who was fenced before its claim, or crashed, left
// pieces that mean nothing, and that no compaction takes.
func (s redrivenElsewhere) of(ledger *dlq.Ledger) (gone []*kgo.Record) {
	for _, names := range s {
		for _, name := range names {
			gone = append(gone, dlq.RunRecord(ledger.Name(), name, nil))
		}
	}
	return gone
}

// noteDuplicates writes down the copies of letters of which the ledger says nothing yet: a copy is
// open again when its letter has expired, unless the ledger says what it is. What the plan took for
// the copy of a letter that somebody has settled by now may have failed since.
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

// declare writes the claim, with what goes before it: a claim whose selection is not there could not be resumed, and who resumes a run
// does not look for copies. All of it is one transaction, or of a large selection a few, of which the claim is in the last.
func (h *ownedRun) declare(ctx context.Context, notes []*kgo.Record) error {
	return h.write(ctx, 0, append(notes, h.rec.note(h.topics.ledger)))
}

// write writes notes in as many transactions as they take. The first is written by the producer that is named, and then they take turns.
func (h *ownedRun) write(ctx context.Context, which int, notes []*kgo.Record) error {
	for len(notes) > 0 {
		n, bytes := h.load.some(notes)
		began := time.Now()
		if err := h.writers.write(ctx, which, notes[:n]...); err != nil {
			return h.load.overdue(attempt{began: began, records: n, bytes: bytes}, err)
		}
		notes, which = notes[n:], 1-which
	}
	return nil
}

// take takes a run over, from whoever has it, with what the ledger knows of it. change is asked more than once where others come in
// between, each time about the run as the ledger has it then.
func (r *Redriver) take(ctx context.Context, t *topics, id string, l *load, change func(*ownedRun) error) (*ownedRun, error) {
	for try := 1; ; try++ {
		w, err := openWriters(ctx, r.cfg.Kafka, t.dlq, l.timeout)
		if err != nil {
			return nil, within(t.dlq, err)
		}
		h, err := r.tryTake(ctx, t, id, change, w)
		if err == nil {
			h.load = l
			return h, nil
		}
		w.close()
		if !errors.Is(err, errUncertain) {
			return nil, within(t.dlq, err)
		}
		pause(ctx, standBack(try))
		if err := r.stillMine(ctx, t, id, change); err != nil {
			return nil, within(t.dlq, err)
		}
	}
}

// stillMine looks into the ledger, before the ids are initialised once more, whether a run may still be taken.
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

func (r *Redriver) tryTake(ctx context.Context, t *topics, id string, change func(*ownedRun) error, w *writers) (*ownedRun, error) {
	if err := fence(ctx, r.cfg.Kafka, w, t.ledger, t.ledger); err != nil {
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
	if err := fence(ctx, r.cfg.Kafka, w, t.ledger, h.rec.targets()...); err != nil {
		return nil, err
	}
	return h, w.write(ctx, 0, h.rec.note(t.ledger))
}

// read reads what the ledger knows of a run: its selection less what has an entry, and what was sent without an outcome.
func (r *Redriver) read(ctx context.Context, t *topics, id string) (*ownedRun, error) {
	h := &ownedRun{r: r, topics: t}
	entries, heard := newLedgerView(), letters.Set{}
	pieces := map[string][]byte{}
	ledger := dlq.NewLedger(t.dlq, t.ledger, r.cfg.Kafka...)
	var bad error
	err := ledger.Read(ctx, nil, func(n *dlq.LedgerRecord) {
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
		return nil, permission.Denied("READ", "topic", t.ledger, err)
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

// recount counts anew what became of the letters of a run that is unfinished: the entries came with the copies, and what the run says
// of itself is some seconds old.
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

// recountGroups adds to the counts of a finished run what became known since: that a consumer discarded what was pending. Of its letters
// others may have been brought back again by now, so the entries alone do not say what became of them then.
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

func groupsOf(p *Plan) (groups []string) {
	for g := range p.ByGroup {
		if g != "" {
			groups = append(groups, g)
		}
	}
	return groups
}

func classesOf(p *Plan) (classes []string) {
	for c := range p.ByClass {
		classes = append(classes, c)
	}
	return classes
}

// entry is the ledger's entry about a letter of the run.
func (h *ownedRun) entry(at letters.Place, e dlq.Entry) *kgo.Record {
	e.TopicID, e.Run, e.At, e.By, e.Why = h.topicID, h.rec.ID, time.Now(), h.rec.By, h.rec.Why
	return e.Record(h.topics.ledger, at.Partition, at.Offset)
}

// applyVerdict is the ledger's entry about what became of a letter. What a consumer said of it is not needed any more then. The letter is
// settled since the run sent it, which was not before the claim: when each was sent nobody keeps.
func (h *ownedRun) applyVerdict(v inflight.Verdict) []*kgo.Record {
	v.Entry.Since = h.rec.Started
	notes := []*kgo.Record{h.entry(v.Letter, v.Entry)}
	if v.Reported {
		unsaid := dlq.Entry{Run: h.rec.ID}
		notes = append(notes, unsaid.DiscardReport(h.topics.ledger, v.Letter.Partition, v.Letter.Offset))
	}
	return notes
}

// count takes down what the ledger says of a letter of the run.
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
