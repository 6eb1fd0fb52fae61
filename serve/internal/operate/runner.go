package operate

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/notes"
	"github.com/sidingkafka/siding/serve/internal/watch"
)

// Runner runs redrives in the background, while the server runs. It is safe for concurrent use.
type Runner struct {
	log *slog.Logger
	all sync.WaitGroup

	mu      sync.Mutex
	ctx     context.Context // of the server; nil unless it runs
	writer  *notes.Writer   // to ledgers
	live    map[string]*LiveRun
	blocked map[string]blocked // by topic/run
}

// blocked is why a run that no process owns does not go on here, and since when.
type blocked struct {
	why string
	at  time.Time
}

// LiveRun is a run that this process owns, or has just ended.
type LiveRun struct {
	topic, id string

	mu      sync.Mutex
	last    redrive.Outcome
	notices []string
	ended   bool
	endedAt time.Time
}

// mostNotices bounds the notices of a run that are kept.
const mostNotices = 20

func (l *LiveRun) observe(e *redrive.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Message == "" { // with one, the other fields may be old
		l.last = e.Outcome
		return
	}
	if l.notices = append(l.notices, e.Message); len(l.notices) > mostNotices {
		l.notices = l.notices[1:]
	}
}

// Get returns what the run last reported, what it said, and whether it has ended.
func (l *LiveRun) Get() (o redrive.Outcome, notices []string, ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last, l.notices, l.ended
}

func (l *LiveRun) hasEnded() bool {
	_, _, ended := l.Get()
	return ended
}

func newRunner(log *slog.Logger) *Runner {
	return &Runner{log: log, live: map[string]*LiveRun{}, blocked: map[string]blocked{}}
}

// Begin lets runs begin, until ctx ends. writer writes to ledgers.
func (r *Runner) Begin(ctx context.Context, writer *notes.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ctx, r.writer = ctx, writer
}

// End waits until the runs have ended. The context of begin has ended before, so they stop in
// order, and another process can resume them.
func (r *Runner) End() {
	r.mu.Lock()
	r.ctx = nil
	r.mu.Unlock()
	r.all.Wait() // the last ones may still write notes
	r.mu.Lock()
	r.writer = nil
	r.mu.Unlock()
}

// Running returns the context of the server. The error is a problem.
func (r *Runner) Running() (context.Context, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx == nil || r.ctx.Err() != nil {
		return nil, failure.NewProblem(api.NotRunning, "the server is ending, or has not begun: ask again, or another one")
	}
	return r.ctx, nil
}

// claimTime is how long a request waits until its run is claimed in the ledger.
const claimTime = 90 * time.Second

// Launch begins a run in the background. It returns when the run is claimed, or when it was
// refused. Whoever asked for the run may be gone before.
func (r *Runner) Launch(topic string, run func(context.Context, func(redrive.Event)) (redrive.Outcome, error)) (redrive.Outcome, error) {
	type result struct {
		o   redrive.Outcome
		err error
	}
	began := make(chan result, 2)
	r.mu.Lock()
	ctx := r.ctx
	if ctx == nil || ctx.Err() != nil {
		r.mu.Unlock()
		_, err := r.Running()
		return redrive.Outcome{}, err
	}
	r.all.Go(func() {
		f := r.Follow(topic)
		f.claimed = func(o redrive.Outcome) { began <- result{o: o} }
		o, err := run(ctx, f.Observe)
		f.End(ctx, o, err)
		began <- result{o, err} // read only if the run was refused
	})
	r.mu.Unlock()
	select {
	case got := <-began:
		return got.o, got.err
	case <-time.After(claimTime):
		return redrive.Outcome{}, failure.NewProblem(api.Timeout, "the run is not claimed yet: the brokers are slow; see in the list of runs whether it begins")
	}
}

// Following keeps what a run reports, for those who look at it. It is for the run's goroutine.
type Following struct {
	r       *Runner
	topic   string
	claimed func(redrive.Outcome) // is called once; nil is allowed
	Run     *LiveRun              // nil until the run is claimed
	early   []redrive.Event       // messages before that
}

// Follow returns what takes the reports of a run of a topic.
func (r *Runner) Follow(topic string) *Following { return &Following{r: r, topic: topic} }

// Observe takes an event of the run.
func (f *Following) Observe(e redrive.Event) {
	if f.Run == nil {
		if e.Message != "" {
			f.early = append(f.early, e) // perhaps the run is not claimed yet
			return
		}
		f.Run = &LiveRun{topic: f.topic, id: e.ID, last: e.Outcome}
		for i := range f.early {
			f.Run.observe(&f.early[i])
		}
		f.r.mu.Lock()
		f.r.live[f.topic+"/"+e.ID] = f.Run
		delete(f.r.blocked, f.topic+"/"+e.ID)
		f.r.mu.Unlock()
		if f.claimed != nil {
			f.claimed(e.Outcome)
		}
	}
	f.Run.observe(&e)
}

// End keeps how the run ended.
func (f *Following) End(ctx context.Context, o redrive.Outcome, err error) {
	l := f.Run
	if l == nil {
		return // it was refused
	}
	l.mu.Lock()
	if o.ID != "" && !errors.Is(err, redrive.ErrTaken) {
		l.last = o
	}
	l.ended, l.endedAt = true, time.Now()
	l.mu.Unlock()
	_, failed := errors.AsType[*redrive.FailedAgainError](err)
	if err != nil && !failed && ctx.Err() == nil {
		f.r.Block(l.topic, l.id, err)
		f.r.log.Warn("siding: a run ended early", "topic", l.topic, "run", l.id, "error", err)
	}
}

// Block keeps why a run does not go on here, until it does. It reports whether that is new.
func (r *Runner) Block(topic, id string, err error) (isNew bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.blocked[topic+"/"+id]
	r.blocked[topic+"/"+id] = blocked{err.Error(), time.Now()}
	return was.why != err.Error()
}

// blockedBy returns why a run does not go on here; empty if it does, or if none was tried.
func (r *Runner) blockedBy(topic, id string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.blocked[topic+"/"+id].why
}

// Of returns a run that this process owns or owned; nil if it does not. known is what the ledger
// has: once that is as new, a run that ended is forgotten.
func (r *Runner) Of(topic, id string, known *redrive.Outcome) *LiveRun {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.live[topic+"/"+id]
	if l == nil {
		return nil
	}
	if o, _, ended := l.Get(); ended && known != nil && (known.State.Finished() || !watch.Newer(&o, known)) {
		delete(r.live, topic+"/"+id)
		return nil
	}
	return l
}

// OnTopic returns the runs of a topic that this process owns or owned.
func (r *Runner) OnTopic(topic string) (all []*LiveRun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.live {
		if l.topic == topic {
			all = append(all, l)
		}
	}
	return all
}

// forgetAfter is how long after its end a run is forgotten at the latest: the ledger has it.
const forgetAfter = time.Hour

// Forget drops the runs that ended long ago, and what blocked others long ago: what still does is
// kept anew.
func (r *Runner) Forget(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.live, func(_ string, l *LiveRun) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.ended && now.Sub(l.endedAt) > forgetAfter
	})
	maps.DeleteFunc(r.blocked, func(_ string, h blocked) bool { return now.Sub(h.at) > forgetAfter })
}

// WriteNote writes a note of the server to a topic's ledger; nil deletes it. It is not interrupted
// by the end of the request.
func (r *Runner) WriteNote(ctx context.Context, t *watch.Topic, name string, value any) error {
	if err := t.HasLedger(); err != nil {
		return err
	}
	var text []byte
	if value != nil {
		var err error
		if text, err = json.Marshal(value); err != nil {
			return err
		}
	}
	r.mu.Lock()
	writer := r.writer
	r.mu.Unlock()
	if writer == nil {
		_, err := r.Running()
		return err
	}
	return writer.WriteNow(ctx, t.Index.Note(name, text))
}
