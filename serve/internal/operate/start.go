package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/request"
	"github.com/sidingkafka/siding/serve/internal/selection"
	"github.com/sidingkafka/siding/serve/internal/watch"
)

// StartRun begins a run of the letters that a filter selects.
func StartRun(ctx context.Context, d *Desk, who *access.Identity, in *request.Start) (api.Run, error) {
	t, sel, err := chooseOpen(ctx, d, who, in.Topic.Topic, &in.Body.Filter)
	if err != nil {
		return api.Run{}, err
	}
	return start(ctx, d, who, t, sel, in.IdempotencyKey, &in.Body)
}

// RedriveLetter begins a run of one letter. Those that one sender retries in the same way at about
// the same time are one run, since a topic has one at a time. If they cannot be, each is alone.
func RedriveLetter(ctx context.Context, d *Desk, who *access.Identity, in *request.Redrive) (api.Run, error) {
	body := api.RunRequest{Filter: api.Filter{Offset: []string{fmt.Sprintf("%d:%d", in.Partition, in.Offset)}}, RunOptions: in.Body}
	t, sel, err := chooseOpen(ctx, d, who, in.Topic.Topic, &body.Filter)
	if err != nil {
		return api.Run{}, err
	}
	if in.IdempotencyKey != "" { // the run is of that request alone
		return start(ctx, d, who, t, sel, in.IdempotencyKey, &body)
	}
	options, err := json.Marshal(in.Body)
	if err != nil {
		return api.Run{}, failure.NewProblem(api.InvalidRequest, "%v", err)
	}
	// Whoever comes first may leave, and the others stay.
	stays, cancel := context.WithTimeout(context.WithoutCancel(ctx), access.LongTime)
	defer cancel()
	run, n, err := t.Singles.Do(ctx, hashOf(who.Name, who.Rights(), string(options)), body.Filter.Offset[0], func() { awaitSingles(stays, d.Runner, t) }, func(all []string) (api.Run, error) {
		slices.Sort(all)
		together := body
		together.Filter.Offset = slices.Compact(all)
		if n := int64(len(together.Filter.Offset)); n > 1 {
			together.Expect = &n
		}
		t, sel, err := chooseOpen(stays, d, who, in.Topic.Topic, &together.Filter)
		if err != nil {
			return api.Run{}, err
		}
		return startSingles(stays, d, who, t, sel, &together)
	})
	if err == nil || n == 1 {
		return run, problemOn(ctx, d, t, err)
	}
	return startSingles(ctx, d, who, t, sel, &body)
}

// singlesTime is how long the retry of a letter waits for others.
const singlesTime = 500 * time.Millisecond

// awaitSingles waits for that time, and until the last run of single letters has ended.
func awaitSingles(ctx context.Context, r *Runner, t *watch.Topic) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(singlesTime):
		}
		if !singlesGoOn(r, t) {
			return
		}
	}
}

// singlesGoOn reports whether the last run of single letters of a topic goes on here.
func singlesGoOn(r *Runner, t *watch.Topic) bool {
	last := r.Of(t.DeadLetterTopic.Topic, or(t.Single.Load()).ID, nil)
	return last != nil && !last.hasEnded()
}

// startSingles begins a run of letters that were retried one by one, after the last one of these.
func startSingles(ctx context.Context, d *Desk, who *access.Identity, t *watch.Topic, sel *selection.Selection, in *api.RunRequest) (api.Run, error) {
	for {
		run, err := start(ctx, d, who, t, sel, "", in)
		if err == nil {
			t.Single.Store(&run)
		}
		if !failure.IsProblem(err, api.UnfinishedRun) || !singlesGoOn(d.Runner, t) {
			return run, err
		}
		awaitSingles(ctx, d.Runner, t)
	}
}

// start begins a run, unless the same request has begun one.
func start(ctx context.Context, d *Desk, who *access.Identity, t *watch.Topic, sel *selection.Selection, key string, in *api.RunRequest) (api.Run, error) {
	var err error
	if in.Why, err = reasonOf(in.Why, false); err != nil {
		return api.Run{}, err
	}
	release, err := t.Alone(ctx)
	if err != nil {
		return api.Run{}, problemOn(ctx, d, t, err)
	}
	defer release()
	text, err := json.Marshal(in)
	if err != nil {
		return api.Run{}, failure.NewProblem(api.InvalidRequest, "%v", err)
	}
	note := watch.RunNote{V: 1, By: who.Name, At: time.Now().UTC(), Request: hashOf(string(text))}
	if key != "" {
		note.Key = hashOf(who.Name, key)
		if run, err := begun(ctx, d, t, &note); run != nil || err != nil {
			return or(run), err
		}
	}
	run, err := startNew(ctx, d, who, t, sel, in, &note)
	if key != "" && (failure.IsProblem(err, api.UnfinishedRun) || failure.IsProblem(err, api.NothingSelected)) {
		// Perhaps another server was faster with the same request.
		if was := awaitBegun(ctx, d, t, &note, failure.IsProblem(err, api.UnfinishedRun)); was != nil {
			return *was, nil
		}
	}
	return run, err
}

// startNew begins a run. Its note comes before its claim: so whoever finds no note after planning
// has planned before any run of the same request began, and only one of these plans can be claimed.
func startNew(ctx context.Context, d *Desk, who *access.Identity, t *watch.Topic, sel *selection.Selection, in *api.RunRequest, n *watch.RunNote) (api.Run, error) {
	name := t.DeadLetterTopic.Topic
	p, err := plan(ctx, d, who, t, sel, &in.RunOptions)
	switch {
	case err != nil:
		return api.Run{}, err
	case in.Expect != nil && *in.Expect != p.Letters:
		return api.Run{}, failure.NewProblem(api.WrongNumber, "%d letters of %s would be sent, and %d are expected: nothing was done; look again at what the filter selects", p.Letters, name, *in.Expect)
	}
	if n.Key != "" {
		if run, err := begun(ctx, d, t, n); run != nil || err != nil {
			return or(run), err
		}
	}
	if err := recordRun(ctx, d, t, p.ID, n); err != nil {
		return api.Run{}, problemOn(ctx, d, t, err) // what is not in the ledger is not done
	}
	o, err := d.Runner.Launch(name, func(ctx context.Context, on func(redrive.Event)) (redrive.Outcome, error) {
		return d.cfg.Redriver.Run(ctx, p, redrive.RunOptions{
			By: n.By, Why: in.Why, Pace: paceOf(&in.Pace), On: on, Veto: func(ctx context.Context) error { return isNew(ctx, d, t, n) },
		})
	})
	if errors.Is(err, errBegun) {
		if run, err := begun(ctx, d, t, n); run != nil || err != nil {
			return or(run), err
		}
	}
	if _, refused := errors.AsType[*redrive.RefusedError](err); refused {
		// without a run it does no harm
		_ = d.Runner.WriteNote(ctx, t, watch.RunNotePrefix+p.ID, nil)
	}
	if err != nil {
		return api.Run{}, problemOn(ctx, d, t, err)
	}
	return runAs(d, t, &o), nil
}

// errBegun reports that the same request has begun another run meanwhile, which may have ended.
var errBegun = errors.New("the same request began a run on another server")

// isNew checks, while a run is being claimed, that its request has begun no other one.
func isNew(ctx context.Context, d *Desk, t *watch.Topic, n *watch.RunNote) error {
	if n.Key == "" {
		return nil
	}
	switch run, err := begun(ctx, d, t, n); {
	case err != nil:
		return err
	case run != nil:
		return errBegun
	}
	return nil
}

func or(run *api.Run) api.Run {
	if run == nil {
		return api.Run{}
	}
	return *run
}

// begun returns the run that the same request has begun, on whichever server; nil if there is none.
func begun(ctx context.Context, d *Desk, t *watch.Topic, n *watch.RunNote) (*api.Run, error) {
	if err := freshen(ctx, d, t); err != nil {
		return nil, err // it is not known whether the run was begun
	}
	for id, is := range watch.RunNotes(t) {
		if is.Key != n.Key || time.Since(is.At) > keyTime {
			continue
		}
		if is.Request != n.Request {
			return nil, failure.NewProblem(api.KeyReused, "this Idempotency-Key began run %s/%s with another request: take a new key", t.DeadLetterTopic.Topic, id)
		}
		o, err := outcomeOf(ctx, d, t, id)
		switch {
		case failure.IsProblem(err, api.NoRun):
			continue // it was refused, or is not claimed yet
		case err != nil:
			return nil, err
		}
		run := runAs(d, t, &o)
		return &run, nil
	}
	return nil, nil
}

// Another server that got the same request at the same time may be about to claim its run.
const (
	awaitNote      = 5 * time.Second
	awaitNoteEvery = 500 * time.Millisecond
)

func awaitBegun(ctx context.Context, d *Desk, t *watch.Topic, n *watch.RunNote, again bool) *api.Run {
	for end := time.Now().Add(awaitNote); ; {
		if run, err := begun(ctx, d, t, n); run != nil && err == nil {
			return run
		}
		if !again || time.Now().After(end) {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(awaitNoteEvery):
		}
	}
}
