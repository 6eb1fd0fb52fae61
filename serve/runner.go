package serve

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
	"github.com/sidingkafka/siding/serve/internal/watch"
)

// runner runs redrives in the background, while the server runs. It is safe for concurrent use.
type runner struct {
	log *slog.Logger
	all sync.WaitGroup

	mu     sync.Mutex
	ctx    context.Context // of the server; nil unless it runs
	writer *noteWriter     // to ledgers
	live   map[string]*liveRun
	stuck  map[string]hindrance // by topic/run
}

// hindrance is why a run that no process owns does not go on here.
type hindrance struct {
	why string
	at  time.Time
}

// liveRun is a run that this process owns, or has just ended.
type liveRun struct {
	topic, id string

	mu      sync.Mutex
	last    redrive.Outcome
	notices []string
	ended   bool
	endedAt time.Time
}

// mostNotices bounds the notices of a run that are kept.
const mostNotices = 20

func (l *liveRun) see(e *redrive.Event) {
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

func (l *liveRun) get() (o redrive.Outcome, notices []string, ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last, l.notices, l.ended
}

func (l *liveRun) hasEnded() bool {
	_, _, ended := l.get()
	return ended
}

func (r *runner) begin(ctx context.Context, writer *noteWriter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ctx, r.writer = ctx, writer
}

// end waits until the runs have ended. The context of begin has ended before, so they stop in
// order, and another process can resume them.
func (r *runner) end() {
	r.mu.Lock()
	r.ctx = nil
	r.mu.Unlock()
	r.all.Wait() // the last ones may still write notes
	r.mu.Lock()
	r.writer = nil
	r.mu.Unlock()
}

// running returns the context of the server. The error is a problem.
func (r *runner) running() (context.Context, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx == nil || r.ctx.Err() != nil {
		return nil, problem(api.NotRunning, "the server is ending, or has not begun: ask again, or another one")
	}
	return r.ctx, nil
}

// claimTime is how long a request waits until its run is claimed in the ledger.
const claimTime = 90 * time.Second

// launch begins a run in the background. It returns when the run is claimed, or when it was
// refused. Whoever asked for the run may be gone before.
func (r *runner) launch(topic string, run func(context.Context, func(redrive.Event)) (redrive.Outcome, error)) (redrive.Outcome, error) {
	type result struct {
		o   redrive.Outcome
		err error
	}
	began := make(chan result, 2)
	r.mu.Lock()
	ctx := r.ctx
	if ctx == nil || ctx.Err() != nil {
		r.mu.Unlock()
		_, err := r.running()
		return redrive.Outcome{}, err
	}
	r.all.Go(func() {
		f := r.follow(topic)
		f.claimed = func(o redrive.Outcome) { began <- result{o: o} }
		o, err := run(ctx, f.see)
		f.end(ctx, o, err)
		began <- result{o, err} // nobody reads it unless the run was refused
	})
	r.mu.Unlock()
	select {
	case got := <-began:
		return got.o, got.err
	case <-time.After(claimTime):
		return redrive.Outcome{}, problem(api.Timeout, "the run is not claimed yet: the brokers are slow; see in the list of runs whether it begins")
	}
}

// following keeps what a run reports, for those who look at it. It is for the run's goroutine.
type following struct {
	r       *runner
	topic   string
	claimed func(redrive.Outcome) // is called once; nil is allowed
	run     *liveRun              // nil until the run is claimed
	early   []redrive.Event       // messages before that
}

// follow returns what takes the reports of a run of a topic.
func (r *runner) follow(topic string) *following { return &following{r: r, topic: topic} }

func (f *following) see(e redrive.Event) {
	if f.run == nil {
		if e.Message != "" {
			f.early = append(f.early, e) // perhaps the run is not claimed yet
			return
		}
		f.run = &liveRun{topic: f.topic, id: e.ID, last: e.Outcome}
		for i := range f.early {
			f.run.see(&f.early[i])
		}
		f.r.mu.Lock()
		f.r.live[f.topic+"/"+e.ID] = f.run
		delete(f.r.stuck, f.topic+"/"+e.ID)
		f.r.mu.Unlock()
		if f.claimed != nil {
			f.claimed(e.Outcome)
		}
	}
	f.run.see(&e)
}

func (f *following) end(ctx context.Context, o redrive.Outcome, err error) {
	l := f.run
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
		f.r.hinder(l.topic, l.id, err)
		f.r.log.Warn("siding: a run ended early", "topic", l.topic, "run", l.id, "error", err)
	}
}

// hinder keeps why a run does not go on here, until it does. It reports whether that is new.
func (r *runner) hinder(topic, id string, err error) (isNew bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.stuck[topic+"/"+id]
	r.stuck[topic+"/"+id] = hindrance{err.Error(), time.Now()}
	return was.why != err.Error()
}

// hindrance returns why a run does not go on here; empty if it does, or if nobody has tried.
func (r *runner) hindrance(topic, id string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stuck[topic+"/"+id].why
}

// of returns a run that this process owns or owned; nil if it does not. known is what the ledger
// has: once that is as new, a run that ended is forgotten.
func (r *runner) of(topic, id string, known *redrive.Outcome) *liveRun {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.live[topic+"/"+id]
	if l == nil {
		return nil
	}
	if o, _, ended := l.get(); ended && known != nil && (known.State.Finished() || !watch.Newer(&o, known)) {
		delete(r.live, topic+"/"+id)
		return nil
	}
	return l
}

// onTopic returns the runs of a topic that this process owns or owned.
func (r *runner) onTopic(topic string) (all []*liveRun) {
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

// forget drops the runs that ended long ago, and old hindrances: those that last are told anew.
func (r *runner) forget(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.live, func(_ string, l *liveRun) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.ended && now.Sub(l.endedAt) > forgetAfter
	})
	maps.DeleteFunc(r.stuck, func(_ string, h hindrance) bool { return now.Sub(h.at) > forgetAfter })
}

// noteTime is how long the brokers may take for a note.
const noteTime = 10 * time.Second

// note writes a note of the server to a topic's ledger; nil deletes it. It is not interrupted by
// the end of the request.
func (r *runner) note(ctx context.Context, t *watch.Topic, name string, value any) error {
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
		_, err := r.running()
		return err
	}
	return writer.writeNow(ctx, t.Book.Note(name, text))
}
