package redrive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/redrive/internal/permission"
)

// Run brings back what a plan has frozen, until the window after the last record is
// over. on, if not nil, is told of the progress, some times a second, from one
// goroutine; it must not block for long.
//
// A *RefusedError says that it did not begin, a *[FailedAgainError] that it aborted
// itself. When ctx ends it stops cleanly, and returns its cause: the run is
// unfinished, and [Redriver.Resume] goes on with it. So it does after a crash, and
// after a *[DeniedError] about a right that was taken away meanwhile. An
// error that wraps [ErrTaken] says that somebody else resumed or aborted it. Once it
// has begun it waits while brokers can't be reached, and tells on what for. The
// Outcome is what is known then.
func (r *Redriver) Run(ctx context.Context, p *Plan, pace Pace, on func(Event)) (Outcome, error) {
	pace = pace.withDefaults()
	if err := pace.validate(); err != nil {
		return Outcome{}, within(p.topics.dlq, err)
	}
	topic := p.topics.dlq
	p, err := r.recheck(ctx, p)
	if err != nil {
		return Outcome{}, within(topic, err)
	}
	h, err := r.claim(ctx, p, pace, on)
	if err != nil {
		return Outcome{}, err
	}
	return r.drive(ctx, h, on)
}

// recheck looks whether all is still as it was when the plan was made, and returns the plan as it would be made now: another run would
// be fenced by the claim, though it would stand.
func (r *Redriver) recheck(ctx context.Context, p *Plan) (*Plan, error) {
	if _, err := r.ledgerFor(ctx, p, nil); err != nil {
		return nil, err
	}
	cl, err := client.New(r.cfg.Kafka...)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	now := *p // the plan is the caller's, and may have been looked at by others
	now.Targets, now.Warnings, now.tiers = map[string]int64{}, nil, nil
	if err := now.resolveGroups(ctx, cl); err != nil {
		return nil, err
	}
	return &now, nil
}

// Status is what became of a run's letters by now. It writes nothing, and finds out
// itself what no engine has written down yet: of a run that is over, or whose process
// is gone, letters may have an outcome since. Letters that are dead letters again
// have failed, also where the run took them for processed because it could not see
// the retry topic in which they were.
func (r *Redriver) Status(ctx context.Context, topic, id string) (Outcome, error) {
	t, err := r.topicsOf(topic, nil)
	if err != nil {
		return Outcome{}, err
	}
	h, err := r.read(ctx, t, id)
	if err != nil {
		return Outcome{}, within(topic, err)
	}
	h.rec.Counts.Skipped = h.skipped
	o := h.rec.outcome(topic)
	_, counts, err := h.derive(ctx)
	if err != nil {
		return o, within(topic, err)
	}
	o.Counts = counts
	return o, within(topic, h.refailed(ctx, &o.Counts))
}

// Resume goes on with an unfinished run, wherever it was begun: what the ledger says
// was sent is not sent again. Without a [Condition] whoever else has it loses it. It
// returns like [Redriver.Run].
func (r *Redriver) Resume(ctx context.Context, topic, id string, on func(Event), conditions ...Condition) (Outcome, error) {
	t, err := r.topicsOf(topic, nil)
	if err != nil {
		return Outcome{}, err
	}
	w := &taking{topic: topic, id: id, conditions: conditions, token: token(8)}
	if len(conditions) > 0 {
		if _, err := r.poll(ctx, t, w); err != nil {
			return Outcome{}, within(topic, err)
		}
	}
	h, err := r.take(ctx, t, id, newLoad(r.cfg.MaxBufferedBytes/2), func(h *ownedRun) error {
		rec := h.rec
		if h.recreated {
			return fmt.Errorf("run %s: %w: abort it", id, ErrTopicRecreated)
		}
		if rec.State.Finished() {
			return fmt.Errorf("run %s is %s: there is nothing to resume", id, rec.State)
		}
		if rec.Edit.Patch != nil && r.cfg.MergePatch == nil {
			return errors.New("the run has a patch, and Config.MergePatch is nil")
		}
		if err := w.allowed(rec); err != nil {
			return err
		}
		rec.Token, rec.Owner, rec.Heartbeat, rec.Waiting, rec.Stopped = w.token, r.owner, time.Now(), "", nil
		return nil
	})
	if err != nil {
		return Outcome{}, err
	}
	return r.drive(ctx, h, on)
}

// Abort ends an unfinished run, wherever it goes on: what its process has not
// committed by then never becomes visible. What was sent stays, and its outcomes can
// be told. By and Why are kept as the cause. It does nothing to a run that is
// finished. A [Condition] leaves it to whoever has it.
func (r *Redriver) Abort(ctx context.Context, topic, id string, conditions ...Condition) error {
	t, err := r.topicsOf(topic, nil)
	if err != nil {
		return err
	}
	w := &taking{topic: topic, id: id, conditions: conditions, token: token(8)}
	if rec, err := r.poll(ctx, t, w); err != nil {
		return within(topic, err)
	} else if rec != nil && rec.State.Finished() {
		return nil
	}
	h, err := r.take(ctx, t, id, newLoad(r.cfg.MaxBufferedBytes/2), func(h *ownedRun) error {
		rec := h.rec
		if rec.State.Finished() { // while its ids were initialised: what it ended with stands
			return errOver
		}
		if err := w.allowed(rec); err != nil {
			return err
		}
		now := time.Now()
		rec.Counts.Skipped = h.skipped
		rec.Token, rec.Owner, rec.Heartbeat, rec.Waiting, rec.Stopped = w.token, r.owner, now, "", nil
		cause := byHand + r.owner
		if r.cfg.Why != "" {
			cause += ": " + r.cfg.Why
		}
		rec.end(Aborted, cause, now)
		return nil
	})
	if errors.Is(err, errOver) {
		return nil
	} else if err != nil {
		return err
	}
	defer h.writers.close()
	for n := range h.rec.Pieces {
		if err := h.writers.write(ctx, n%2, dlq.RunRecord(t.ledger, pieceName(id, n), nil)); err != nil {
			return within(topic, err)
		}
	}
	return nil
}

// errOver says that a run is finished.
var errOver = errors.New("the run is finished")

// Runs are the runs of a dead-letter topic, oldest first, each with the counts that it
// wrote down itself: those of its end, or of its last heartbeat, every five seconds.
// [Redriver.Status] finds out what became known since. With an error about a run that can't be read come the
// others.
func (r *Redriver) Runs(ctx context.Context, topic string) ([]Outcome, error) {
	t, err := r.topicsOf(topic, nil)
	if err != nil {
		return nil, err
	}
	ledger := dlq.NewLedger(t.dlq, t.ledger, r.cfg.Kafka...)
	if err := ledger.Read(ctx, nil, nil); err != nil && !errors.Is(err, dlq.ErrNewerVersion) {
		return nil, fmt.Errorf("redrive: %w", permission.Denied("READ", "topic", t.ledger, err))
	}
	runs := ledger.Runs()
	var all []Outcome
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(runs)) {
		rec, err := parseRecord(runs[id])
		if err != nil {
			errs = append(errs, within(topic, unreadable(t.ledger, id, err)))
			continue
		}
		all = append(all, rec.outcome(topic))
	}
	slices.SortStableFunc(all, func(a, b Outcome) int { return a.Started.Compare(b.Started) })
	return all, errors.Join(errs...)
}

// drive goes on with a run through what the network and other operators do to it.
func (r *Redriver) drive(ctx context.Context, h *ownedRun, on func(Event)) (Outcome, error) {
	for {
		began := time.Now()
		err := runEngine(ctx, h, on)
		h.writers.close()
		again := errors.Is(err, errUncertain) || errors.Is(err, errUnwatched)
		if again && ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		if !again || ctx.Err() != nil {
			return h.rec.outcome(h.topics.dlq), within(h.topics.dlq, err)
		}
		if on != nil {
			what := err.Error() + "; looking at the ledger"
			if _, expired := errors.AsType[*expiredError](err); isFenced(err) && !expired {
				what = "the broker takes nothing more of what this process writes: looking at the ledger who has the run"
			}
			on(Event{Outcome: h.rec.outcome(h.topics.dlq), Message: what})
		}
		pause(ctx, time.Until(began.Add(time.Second)))
		back, err := r.retake(ctx, h, err, on)
		if err != nil {
			return h.rec.outcome(h.topics.dlq), within(h.topics.dlq, err)
		}
		back.abortErr = h.abortErr
		h = back
	}
}

// retake takes a run again whose producers were fenced, or whose last transaction may stand or not, if nobody else has taken it.
func (r *Redriver) retake(ctx context.Context, h *ownedRun, why error, on func(Event)) (*ownedRun, error) {
	var said throttle
	for {
		again, err := r.takeBack(ctx, h, why)
		if _, denied := errors.AsType[*permission.DeniedError](err); denied { // somebody has to grant it, and then resume
			return nil, err
		}
		if err == nil || errors.Is(err, ErrTaken) || errors.Is(err, ErrNoRun) || errors.Is(err, ErrTopicRecreated) {
			return again, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if text := err.Error(); on != nil && said.first(text) {
			on(Event{Outcome: h.rec.outcome(h.topics.dlq), Message: text + "; trying again"})
		}
		r.log.Warn("redrive: trying again", "topic", h.topics.dlq, "run", h.rec.ID, "error", err)
		pause(ctx, time.Second)
	}
}

// pause waits, but not for longer than ctx lasts.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// byHand begins the cause of a run that was aborted by somebody.
const byHand = "aborted by "

// takenError is why a run is not this process's any more. It wraps ErrTaken.
type takenError struct{ text string }

func (e *takenError) Error() string { return e.text }
func (e *takenError) Unwrap() error { return ErrTaken }

// taken says what became of a run that somebody else has.
func taken(rec *record) error {
	text := fmt.Sprintf("%v: %s", ErrTaken, rec.Owner)
	switch {
	case rec.State == Aborted && strings.HasPrefix(rec.Cause, byHand):
		text = "it was " + rec.Cause
	case rec.State == Aborted:
		text += ", and it was aborted: " + rec.Cause
	case rec.State.Finished():
		text += fmt.Sprintf(", and it is %s", rec.State)
	}
	return &takenError{fmt.Sprintf("run %s: %s", rec.ID, text)}
}

// How long the ledger is read before the ids are initialised: of a run that was fenced nothing is open any more; of another one it may
// be its own transaction for which the reading waits, and to initialise them ends it.
const (
	peekFenced = 5 * time.Second
	peek       = time.Second
)

// takeBack is one try of it. The ledger is read first, since to initialise the ids fences whoever has the run by now.
func (r *Redriver) takeBack(ctx context.Context, h *ownedRun, why error) (*ownedRun, error) {
	claimed := func(now *ownedRun) error {
		switch rec := now.rec; {
		case rec.Token != h.rec.Token:
			return taken(rec)
		case now.recreated:
			return fmt.Errorf("run %s: %w: abort it", rec.ID, ErrTopicRecreated)
		}
		now.rec.Heartbeat = time.Now()
		return nil
	}
	patience := peek
	if isFenced(why) {
		patience = peekFenced
	}
	first, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	now, err := r.read(first, h.topics, h.rec.ID)
	if err == nil {
		err = claimed(now)
	}
	if err != nil && first.Err() == nil {
		return nil, err
	}
	return r.take(ctx, h.topics, h.rec.ID, h.load, claimed)
}
