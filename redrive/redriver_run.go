package redrive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/redrive/internal/permission"
	"github.com/sidingkafka/siding/redrive/internal/txn"
)

// Run redrives the letters of a plan, and returns when the window after the last letter is over.
//
// Run returns a *[RefusedError] if the run was not begun, and a *[FailedAgainError] if the run
// aborted itself. When ctx ends, Run stops cleanly and returns the cause of ctx. The run is then
// unfinished, and [Redriver.Resume] continues it. The same holds after a crash, and after a
// *[DeniedError] about a permission that was revoked meanwhile. An error that wraps [ErrTaken]
// means that another process resumed or aborted the run.
//
// Run makes the plan's warnings again. Those that the plan does not have are messages of the first
// events.
//
// While brokers cannot be reached, a run waits and reports the reason. The returned Outcome is as
// of the return.
func (r *Redriver) Run(ctx context.Context, p *Plan, o RunOptions) (Outcome, error) {
	o.Pace = o.Pace.withDefaults()
	if err := errors.Join(signed(o.By, o.Why), o.Pace.validate()); err != nil {
		return Outcome{}, within(p.Selection.Topic, err)
	}
	topic := p.Selection.Topic
	p, err := r.adopt(p)
	if err != nil {
		return Outcome{}, within(topic, err)
	}
	known := p.Warnings
	p, err = r.recheck(ctx, p)
	if err != nil {
		return Outcome{}, within(topic, err)
	}
	run, err := r.claim(ctx, p, &o)
	if err != nil {
		return Outcome{}, within(topic, err)
	}
	for _, w := range p.Warnings {
		if o.On != nil && !slices.Contains(known, w) {
			o.On(Event{Outcome: run.rec.outcome(topic), Message: "warning: " + w})
		}
	}
	return r.drive(ctx, run, o.On)
}

// recheck plans the targets again and returns that plan. It comes before the claim, because a claim
// fences the process that owns another run.
func (r *Redriver) recheck(ctx context.Context, p *Plan) (*Plan, error) {
	if _, err := r.ledgerFor(ctx, p, nil); err != nil {
		return nil, err
	}
	cl, err := client.New(r.cfg.Kafka...)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	now, err := p.again(ctx, cl)
	if err != nil {
		return nil, err
	}
	if err := now.resolveGroups(ctx, cl); err != nil {
		return nil, err
	}
	if len(now.absent) > 0 && !now.Selection.Target.Wait {
		return nil, now.topics.refuseGroups(now.absent, RefusedNoMembers, "%s; start the consumer, or let the run wait for it", withoutMembers(now.absent))
	}
	return now, nil
}

// Resume continues an unfinished run from any machine. It does not send a letter again that the
// ledger has as sent. Without a [Condition] it takes the run over from the process that owns it. It
// returns like [Redriver.Run].
//
// The run keeps the operator and the reason that it began with; o.By names the owner from now on.
// Fields of o.Pace that are not zero replace the run's. A new Rate has its own default of Burst and
// MaxLag.
func (r *Redriver) Resume(ctx context.Context, topic, id string, o RunOptions, conditions ...Condition) (Outcome, error) {
	t, err := r.topicsOf(topic, nil)
	if err != nil {
		return Outcome{}, err
	}
	if err := errors.Join(signed(o.By, o.Why), o.Pace.validate()); err != nil {
		return Outcome{}, within(topic, err)
	}
	w := &taking{topic: topic, id: id, conditions: conditions, token: token(8)}
	if len(conditions) > 0 {
		if _, err := r.poll(ctx, t, w); err != nil {
			return Outcome{}, within(topic, err)
		}
	}
	run, err := r.take(ctx, t, id, newLoad(r.cfg.MaxBufferedBytes/2), 0, func(run *ownedRun) error {
		rec := run.rec
		if run.recreated {
			return fmt.Errorf("run %s: %w: abort it", id, ErrTopicRecreated)
		}
		if rec.State.Finished() {
			return fmt.Errorf("run %s is %s: it cannot be resumed; begin a new run with the same options, which takes the letters that are open", id, rec.State)
		}
		if err := errors.Join(w.allowed(rec), o.vetoed(ctx)); err != nil {
			return err
		}
		rec.Token, rec.Owner, rec.Heartbeat, rec.Waiting, rec.Stopped = w.token, r.owner(o.By), time.Now(), "", time.Time{}
		rec.Resumed = resumedBy(rec.Resumed, Resumption{rec.Heartbeat, rec.Owner, o.Pace.over(rec.Pace).changes(rec.Pace)})
		rec.Pace, rec.RampBegan, rec.WindowEnds, rec.Timeout = o.Pace.over(rec.Pace), time.Time{}, time.Time{}, 0
		return nil
	})
	if err != nil {
		return Outcome{}, within(topic, err)
	}
	return r.drive(ctx, run, o.On)
}

// Abort ends an unfinished run from any machine. Copies that its process has not committed never
// become visible. Letters that were sent stay on their target, and their outcomes still become
// known. Abort does nothing to a finished run, or if a [Condition] does not hold; then it returns a
// *[RefusedError].
func (r *Redriver) Abort(ctx context.Context, topic, id string, o AbortOptions, conditions ...Condition) error {
	t, err := r.topicsOf(topic, nil)
	if err != nil {
		return err
	}
	if err := signed(o.By, o.Why); err != nil {
		return within(topic, err)
	}
	w := &taking{topic: topic, id: id, conditions: conditions, token: token(8)}
	if rec, err := r.poll(ctx, t, w); err != nil || rec != nil && rec.State.Finished() {
		return within(topic, err)
	}
	run, err := r.take(ctx, t, id, newLoad(r.cfg.MaxBufferedBytes/2), 0, func(run *ownedRun) error {
		rec := run.rec
		if rec.State.Finished() { // meanwhile, by its own process
			return errOver
		}
		if err := w.allowed(rec); err != nil {
			return err
		}
		now := time.Now()
		rec.Counts.Skipped = run.skipped
		rec.Token, rec.Owner, rec.Heartbeat, rec.Waiting, rec.Stopped = w.token, r.owner(o.By), now, "", time.Time{}
		cause := byHand + rec.Owner
		if o.Why != "" {
			cause += ": " + o.Why
		}
		rec.end(Aborted, cause, now)
		return nil
	})
	if err == nil {
		err = run.write(ctx, 1, run.rec.last(t.ledger)[1:])
		run.writers.Close()
	}
	if errors.Is(err, errOver) || errors.Is(err, txn.ErrUncertain) {
		return nil // another run may own the ids by now
	}
	return within(topic, err)
}

// errOver reports that a run is finished.
var errOver = errors.New("the run is finished")

// drive continues a run through failures of the network and of brokers, until the run is over or
// another process owns it.
func (r *Redriver) drive(ctx context.Context, run *ownedRun, on func(Event)) (Outcome, error) {
	for {
		began := time.Now()
		err := runEngine(ctx, run, on)
		run.writers.Close()
		again := errors.Is(err, txn.ErrUncertain) || errors.Is(err, errUnwatched)
		if again && ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		if !again || ctx.Err() != nil {
			return run.rec.outcome(run.topics.dlq), within(run.topics.dlq, err)
		}
		if on != nil {
			what := err.Error() + "; reading the ledger"
			if _, expired := errors.AsType[*expiredError](err); txn.IsFenced(err) && !expired {
				what = "the broker fenced this process: reading the ledger for the run's owner"
			}
			on(Event{Outcome: run.rec.outcome(run.topics.dlq), Message: what})
		}
		pause(ctx, time.Until(began.Add(time.Second)))
		back, err := r.retake(ctx, run, err, on)
		if err != nil {
			return run.rec.outcome(run.topics.dlq), within(run.topics.dlq, err)
		}
		back.abortErr = run.abortErr
		run = back
	}
}

// retake takes a run back after its producers were fenced, or after a commit without an answer. It
// fails if another process owns the run, or if the dead-letter topic is gone.
func (r *Redriver) retake(ctx context.Context, run *ownedRun, why error, on func(Event)) (*ownedRun, error) {
	var (
		reported throttle
		absent   []time.Time
	)
	for {
		again, err := r.takeBack(ctx, run, why)
		if !errors.Is(err, dlq.ErrNoTopic) {
			absent = nil
		} else if absent = append(absent, time.Now()); isGone(absent) {
			return nil, fmt.Errorf("run %s: %w: abort it", run.rec.ID, ErrTopicRecreated)
		}
		// An operator has to grant a denied permission, and then resume. What a broker refuses for
		// good it refuses again.
		_, denied := errors.AsType[*permission.DeniedError](err)
		if err == nil || denied || refusal(err) != "" || errors.Is(err, ErrTaken) || errors.Is(err, ErrNoRun) || errors.Is(err, ErrTopicRecreated) {
			return again, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if text := err.Error(); on != nil && reported.first(text) {
			on(Event{Outcome: run.rec.outcome(run.topics.dlq), Message: text + "; trying again"})
		}
		r.log.Warn("redrive: trying again", "topic", run.topics.dlq, "run", run.rec.ID, "error", err)
		pause(ctx, time.Second)
	}
}

// poll reads a run before it is claimed, so that a refused claim does not disturb the run. It
// returns nil if the ledger cannot be read in time.
func (r *Redriver) poll(ctx context.Context, t *topics, w *taking) (*record, error) {
	run, err := r.peek(ctx, t, w.id, pollPatience)
	if run == nil || err != nil {
		return nil, err
	}
	rec := run.rec
	if rec.State.Finished() || len(w.conditions) == 0 {
		return rec, nil
	}
	w.before = rec
	if err := w.allowed(rec); err != nil {
		return nil, err
	}
	if !rec.Stopped.IsZero() || !slices.ContainsFunc(w.conditions, func(c Condition) bool { return c.silent }) {
		return rec, nil
	}
	pause(ctx, listens(rec, time.Now()))
	again, err := r.peek(ctx, t, w.id, pollPatience)
	if err != nil {
		return nil, err
	}
	if again == nil {
		w.before = nil
		return rec, nil
	}
	return again.rec, w.allowed(again.rec)
}

// pollPatience is how long poll reads the ledger. A claim disturbs the run's process for some
// seconds, even if the claim is refused. An open transaction may block the reading until a claim
// ends it, so poll does not wait for longer.
const pollPatience = 3 * time.Second

// byHand is the first part of the cause of a run that an operator aborted.
const byHand = "aborted by "
