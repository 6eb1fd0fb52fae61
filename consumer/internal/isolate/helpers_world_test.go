package isolate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidingkafka/siding/consumer/internal/backoff"
	"github.com/sidingkafka/siding/consumer/internal/offsets"
)

const (
	forever = 24 * time.Hour
	// timeout is that of the handlers. One that runs for longer ignores it.
	timeout = 10 * time.Second
)

// Why a commit is not known to be accepted.
var (
	errUnsent = errors.New("no broker") // none could be asked
	errLost   = errors.New("no answer") // the broker has accepted it
)

// world is a process with an isolator, and what the broker has of its commits. Each start of a
// record is checked: a process that dies then must not charge another one.
type world struct {
	t   *testing.T
	s   Isolator
	ctx context.Context

	turn  chan struct{} // capacity 1: to commit
	mu    sync.Mutex
	lanes []*laneModel
	asks  map[*laneModel]bool
	asked chan struct{}

	commit  func(of []Lane) error // why one is not accepted; errUnsent, errLost or another one
	takes   time.Duration         // a commit
	copies  time.Duration         // the copy of a condemned record
	former  func() (running, late bool)
	failed  bool // a commit did
	refused bool // a commit was, so that a record that has run alone may still be named
	commits int
	began   time.Time
	last    time.Duration // a record ended, of those that take a short time
}

// laneModel is a lane of a world.
type laneModel struct {
	w     *world
	feeds []*feedModel
	keeps bool // it lets no record start: it is paused, or held
}

// feedModel is a feed with records that wait.
type feedModel struct {
	*State
	lane     *laneModel
	name     string
	window   Window
	tracker  offsets.Tracker
	said     offsets.Evidence // the broker has
	made     time.Time        // that commit
	ended    time.Time        // the last record
	late     map[int64]bool   // those that took longer than their timeout
	next     int64
	waiting  []int64
	running  map[int64]time.Time
	ran      map[int64]int
	alone    int64
	width    int // so many run at a time; 0 for any number
	announce func(bool)
	takes    func(offset int64) time.Duration
}

// play has a world run for a time, in which all records that end have to end.
func play(t *testing.T, lasts time.Duration, build func(*world)) (w *world) {
	synctest.Test(t, func(t *testing.T) {
		w = &world{t: t, asks: map[*laneModel]bool{}, asked: make(chan struct{}, 1), turn: make(chan struct{}, 1), takes: time.Millisecond}
		w.commit = func([]Lane) error { return nil }
		w.former = func() (bool, bool) { return false, false }
		build(w)
		w.s.Init(w, slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		w.ctx = ctx
		var wg sync.WaitGroup
		wg.Go(func() { w.commitAsked(ctx) })
		w.Commit(w.Lanes()) // it starts the lanes
		time.Sleep(time.Second)
		w.mu.Lock()
		w.began = time.Now()
		w.mu.Unlock()
		wg.Go(func() { w.s.Run(ctx) })
		time.Sleep(lasts)
		stop()
		wg.Wait()
		if took := time.Since(w.began) - lasts; took > 2*time.Second {
			t.Errorf("the isolator takes %v to end", took)
		}
		w.mu.Lock()
		for f := range w.all() {
			n := 0
			for offset := range f.next {
				if n += f.ran[offset]; f.ran[offset] > 1 || f.takes(offset) == forever {
					n++
				}
			}
			if n != int(f.next) {
				t.Errorf("%d of %d records of %s have run, those of %v have not; the broker has %+v", n, f.next, f.name, f.waiting, f.said)
			}
			if f.announce != nil {
				t.Errorf("record %d of %s runs alone at the end", f.alone, f.name)
			}
		}
		w.mu.Unlock()
		time.Sleep(2 * forever)
	})
	return w
}

// lane adds a lane with a source.
func (w *world) lane(n int64, said offsets.Evidence, takes func(offset int64) time.Duration) *feedModel {
	l := &laneModel{w: w}
	w.lanes = append(w.lanes, l)
	return l.feed(n, said, false, takes)
}

// feed adds a feed with records, of which a commit said something.
func (l *laneModel) feed(n int64, said offsets.Evidence, tier bool, takes func(offset int64) time.Duration) *feedModel {
	f := &feedModel{lane: l, name: fmt.Sprintf("feed %d of lane %d", len(l.feeds), slices.Index(l.w.lanes, l)), said: said, running: map[int64]time.Time{}, late: map[int64]bool{}, ran: map[int64]int{}, takes: takes}
	f.window = New(Settings{CrashLimit: 3, Interval: time.Hour, Tier: tier, Ask: func() { l.w.ask(l) }, Rests: func() bool { return false }, Now: time.Now},
		Start{Evidence: said, End: -1, Epoch: -1})
	f.State = &State{Window: &f.window, Tracker: &f.tracker, Running: true, Waiting: func() []int64 { return f.waiting }}
	l.feeds = append(l.feeds, f)
	f.produce(n)
	return f
}

// produce adds records; the caller holds the lock.
func (f *feedModel) produce(n int64) {
	if n == 0 {
		return
	}
	f.tracker.DeliverRange(f.next, f.next+n-1)
	for ; n > 0; n-- {
		f.waiting = append(f.waiting, f.next)
		f.next++
	}
}

func (w *world) all() func(func(*feedModel) bool) {
	return func(yield func(*feedModel) bool) {
		for _, l := range w.lanes {
			for _, f := range l.feeds {
				if !yield(f) {
					return
				}
			}
		}
	}
}

// ask has a lane be committed; the caller holds the lock.
func (w *world) ask(l *laneModel) {
	w.asks[l] = true
	select {
	case w.asked <- struct{}{}:
	default:
	}
}

// commitAsked commits the lanes that ask.
func (w *world) commitAsked(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.asked:
		}
		time.Sleep(time.Millisecond)
		w.mu.Lock()
		var lanes []Lane
		for l := range w.asks {
			lanes = append(lanes, l)
		}
		clear(w.asks)
		w.mu.Unlock()
		if w.Commit(lanes) != Final {
			time.Sleep(time.Second)
		}
		w.mu.Lock()
		for _, l := range lanes {
			if l := l.(*laneModel); l.awaits() {
				w.ask(l)
			}
		}
		w.mu.Unlock()
	}
}

// Lanes implements Process.
func (w *world) Lanes() (all []Lane) {
	for _, l := range w.lanes {
		all = append(all, l)
	}
	return all
}

// FormerRun implements Process.
func (w *world) FormerRun(time.Time) (running, late bool) { return w.former() }

// Commit implements Process.
func (w *world) Commit(lanes []Lane) Answer {
	type commit struct {
		offsets.Evidence
		asked int64
	}
	w.turn <- struct{}{} // the member sends them one after the other
	defer func() { <-w.turn }()
	w.mu.Lock()
	says := map[*feedModel]commit{}
	for _, l := range lanes {
		for _, f := range l.(*laneModel).feeds {
			asked := f.window.Asked()
			next := int64(-1)
			if len(f.waiting) > 0 {
				next = f.waiting[0]
			}
			says[f] = commit{f.window.Evidence(1, &f.tracker, next, time.Now(), false), asked}
		}
	}
	w.commits++
	err, made := w.commit(lanes), time.Now()
	w.mu.Unlock()
	time.Sleep(w.takes)
	w.mu.Lock()
	for f, of := range says {
		if err == nil || errors.Is(err, errLost) {
			f.said, f.made = of.Evidence, made
			for offset := range f.running {
				if f.window.Suspects().Has(offset) && !f.isNamed(offset) {
					w.t.Errorf("suspect %d of %s runs, and the commit does not name it", offset, f.name)
				}
			}
		}
		if err == nil {
			f.window.Accept(of.Evidence, of.asked)
		}
	}
	w.failed = w.failed || err != nil
	w.refused = w.refused || err != nil && !errors.Is(err, errLost) && !errors.Is(err, errUnsent)
	w.mu.Unlock()
	if err == nil {
		for _, l := range lanes {
			l.Wake()
		}
	}
	switch {
	case errors.Is(err, errUnsent):
		return Unsent
	case errors.Is(err, errLost):
		return Unanswered
	}
	return Final
}

// Wait implements Process.
func (w *world) Wait(d time.Duration) bool { return backoff.Wait(w.ctx, d) }

// Wake implements Lane: the records that may start do.
func (l *laneModel) Wake() {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	for _, f := range l.feeds {
		for i := 0; i < len(f.waiting) && !l.keeps && !l.w.s.Holds(l); {
			offset := f.waiting[i]
			switch {
			case f.Ordered && (i > 0 || len(f.running) > 0), f.width > 0 && len(f.running) >= f.width:
				i = len(f.waiting)
			case f.window.MayStart(offset):
				f.waiting = slices.Delete(f.waiting, i, i+1)
				f.window.Begin(1, offset)
				f.begin(offset)
			default:
				i++
			}
		}
		if f.window.Suspects().IsIsolated() {
			l.w.s.Signal()
		}
	}
}

// SetOnly implements Lane.
func (l *laneModel) SetOnly(on bool) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	for _, f := range l.feeds {
		f.window.SetOnly(on)
	}
}

// LogIsolated implements Lane.
func (l *laneModel) LogIsolated() {}

// Handlers implements Lane.
func (l *laneModel) Handlers(now time.Time) (running, late bool) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	for _, f := range l.feeds {
		for _, began := range f.running {
			over := now.Sub(began) > timeout
			running, late = running || !over, late || over
		}
	}
	return running, late
}

// AwaitsCommit implements Lane.
func (l *laneModel) AwaitsCommit() bool {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	return l.awaits()
}

func (l *laneModel) awaits() bool {
	return slices.ContainsFunc(l.feeds, func(f *feedModel) bool { return f.window.IsAsked() })
}

// EachIsolated implements Lane.
func (l *laneModel) EachIsolated(see func(Feed, *State)) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	for _, f := range l.feeds {
		if !l.keeps && f.window.Suspects().IsIsolated() {
			see(f, f.State)
		}
	}
}

// Lane implements Feed.
func (f *feedModel) Lane() Lane { return f.lane }

// Locked implements Feed.
func (f *feedModel) Locked(do func(*State)) {
	f.lane.w.mu.Lock()
	defer f.lane.w.mu.Unlock()
	do(f.State)
}

// Unfinished implements Feed.
func (f *feedModel) Unfinished(spans []offsets.Span) (left, late []offsets.Span) {
	f.lane.w.mu.Lock()
	defer f.lane.w.mu.Unlock()
	add := func(to *[]offsets.Span, offset int64) {
		*to = offsets.Union(*to, offsets.Intersect(spans, offsets.Span{First: offset, Last: offset}))
	}
	for offset := range f.running {
		if f.isLate(offset) {
			add(&late, offset)
		} else {
			add(&left, offset)
		}
	}
	if !f.lane.keeps && (!f.Ordered || len(f.running) == 0 && len(f.waiting) > 0 && f.window.MayStart(f.waiting[0])) {
		for _, offset := range f.waiting {
			add(&left, offset)
		}
	}
	return left, late
}

// Runs implements Feed.
func (f *feedModel) Runs(offset int64) bool {
	f.lane.w.mu.Lock()
	defer f.lane.w.mu.Unlock()
	_, is := f.running[offset]
	return is
}

// BeginAlone implements Feed.
func (f *feedModel) BeginAlone(offset int64, announce func(bool)) {
	f.lane.w.mu.Lock()
	defer f.lane.w.mu.Unlock()
	f.alone, f.announce = offset, announce
}

// EndAlone implements Feed.
func (f *feedModel) EndAlone() {
	f.lane.w.mu.Lock()
	defer f.lane.w.mu.Unlock()
	f.announce = nil
}

// isLate reports whether a handler ignores its timeout; the caller holds the lock.
func (f *feedModel) isLate(offset int64) bool {
	if began, runs := f.running[offset]; runs && time.Since(began) > timeout {
		f.late[offset] = true
	}
	return f.late[offset]
}

// isNamedAlone reports whether the broker would have a record condemned if the process died now.
func (f *feedModel) isNamedAlone(offset int64) bool {
	return f.said.Alone != nil && f.said.Alone.Offset == offset
}

// isNamed reports whether it would run one by one then, or be condemned.
func (f *feedModel) isNamed(offset int64) bool {
	return f.isNamedAlone(offset) || offsets.In(f.said.Singly, offset)
}

// begin starts a record; the caller holds the lock.
func (f *feedModel) begin(offset int64) {
	w, t := f.lane.w, f.lane.w.t
	_, condemned := f.window.Suspects().Condemns(offset)
	suspect := f.window.Suspects().Has(offset)
	if !condemned {
		if running, late := w.former(); f.isNamedAlone(offset) && (running || late) {
			t.Errorf("record %d of %s starts alone beside handlers of a lane that was closed", offset, f.name)
		}
		for g := range w.all() {
			a := g.said.Alone
			if a != nil && (g != f || a.Offset != offset) && !g.isLate(a.Offset) && (suspect || !w.refused) {
				t.Errorf("record %d of %s starts while a commit says that %d of %s runs alone", offset, f.name, a.Offset, g.name)
			}
			if s := g.said.Suspect; suspect && s > 0 && g.tracker.Floor() >= s && len(g.said.Singly) > 0 && f.made.After(g.ended) {
				t.Errorf("suspect %d of %s starts while a commit names those of %s, which have run", offset, f.name, g.name)
			}
			if slices.ContainsFunc(g.said.Condemned, func(a offsets.Alone) bool { return suspect && g.tracker.IsFinished(a.Offset) }) {
				t.Errorf("suspect %d of %s starts while a commit condemns what is dead-lettered of %s", offset, f.name, g.name)
			}
			if f.isNamedAlone(offset) && len(g.running) > 0 {
				t.Errorf("record %d of %s starts alone beside %v of %s", offset, f.name, slices.Collect(maps.Keys(g.running)), g.name)
			}
		}
		if suspect && !f.isNamed(offset) {
			t.Errorf("suspect %d of %s starts, and no commit names it", offset, f.name)
		}
		f.running[offset] = time.Now()
	}
	announce := f.announce
	if announce != nil && f.alone != offset {
		announce = nil
	}
	go f.run(offset, condemned, announce)
}

// run is the handler, or the copy of a condemned record.
func (f *feedModel) run(offset int64, condemned bool, announce func(bool)) {
	w, takes := f.lane.w, f.takes(offset)
	switch {
	case condemned:
		takes = w.copies
	case announce != nil:
		for _, decoding := range []bool{true, false} {
			announce(decoding)
			w.mu.Lock()
			if a := f.said.Alone; a != nil && a.Offset == offset && a.Decoding != decoding && !w.failed {
				w.t.Errorf("record %d of %s is being decoded: %v, and a commit says %v", offset, f.name, decoding, a.Decoding)
			}
			w.mu.Unlock()
		}
	}
	time.Sleep(takes)
	w.mu.Lock()
	if takes < timeout/2 {
		w.last = time.Since(w.began)
	}
	f.ended = time.Now()
	delete(f.running, offset)
	f.ran[offset]++
	f.tracker.Finish(offset)
	w.mu.Unlock()
	w.s.Signal()
	f.lane.Wake()
}
