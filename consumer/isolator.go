package consumer

import (
	"time"

	"github.com/sidingkafka/siding/consumer/internal/backoff"
	"github.com/sidingkafka/siding/consumer/internal/isolate"
	"github.com/sidingkafka/siding/consumer/internal/offsets"
)

// isolator gives the lanes to an [isolate.Isolator].
type isolator struct{ *Consumer }

// Lanes implements isolate.Process.
func (c isolator) Lanes() []isolate.Lane {
	lanes := c.lanesNow()
	all := make([]isolate.Lane, len(lanes))
	for i, l := range lanes {
		all[i] = l
	}
	return all
}

// FormerRun implements isolate.Process.
func (c isolator) FormerRun(now time.Time) (running, late bool) { return c.abandonedRun(now) }

// Commit implements isolate.Process.
func (c isolator) Commit(of []isolate.Lane) isolate.Answer {
	lanes := make([]*lane, len(of))
	for i, l := range of {
		lanes[i] = l.(*lane)
	}
	switch err := (committer{c.Consumer}).commit(c.ctx, lanes); {
	case isUnanswered(err):
		return isolate.Unanswered
	case isPending(err):
		return isolate.Unsent
	}
	return isolate.Final
}

// Wait implements isolate.Process.
func (c isolator) Wait(d time.Duration) bool { return backoff.Wait(c.stop, d) }

// SetOnly implements isolate.Lane.
func (l *lane) SetOnly(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for f := range l.read() {
		f.window.SetOnly(on)
	}
}

// LogIsolated implements isolate.Lane.
func (l *lane) LogIsolated() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for f := range l.read() {
		if s := f.window.Suspects(); s.IsIsolated() && !s.Logged() {
			l.log.Warn("siding: processes died while they ran these records; they run in groups and one by one, until the one that kills is found",
				"feed", f.topic, "deaths", s.Deaths, "from", f.tracker.Floor(), "to", s.Suspect)
		}
	}
}

// Handlers implements isolate.Lane.
func (l *lane) Handlers(now time.Time) (running, late bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.overdue(now))
	return len(l.units) > n, n > 0
}

// AwaitsCommit implements isolate.Lane.
func (l *lane) AwaitsCommit() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state == laneRunning && anyRead(l, func(f *feed) bool { return f.window.IsAsked() })
}

// EachIsolated implements isolate.Lane.
func (l *lane) EachIsolated(see func(isolate.Feed, *isolate.State)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.updateHold() // so that room, once there is some, wakes it
	if !l.isRunning() || !l.isIsolated() {
		return
	}
	for f := range l.read() {
		if f.window.Suspects().IsIsolated() {
			see(suspectFeed{f}, f.isolationState())
		}
	}
}

// suspectFeed is a feed as an [isolate.Isolator] has it.
type suspectFeed struct{ *feed }

// isolationState returns what decides about the feed's records; the caller holds the lane's lock.
func (f *feed) isolationState() *isolate.State {
	return &isolate.State{
		Window: &f.window, Tracker: &f.tracker, Running: f.lane.state == laneRunning, Waiting: f.waiting,
		Ordered: f.lane.c.cfg.Order == OrderPartition && f.tier.Topic == "",
	}
}

// Lane implements isolate.Feed.
func (f suspectFeed) Lane() isolate.Lane { return f.lane }

// Locked implements isolate.Feed.
func (f suspectFeed) Locked(do func(*isolate.State)) {
	f.lane.mu.Lock()
	defer f.lane.mu.Unlock()
	before := f.window.Asked()
	if do(f.isolationState()); f.window.Asked() != before {
		f.lane.c.asks.Keep(f.lane)
	}
}

// Unfinished implements isolate.Feed.
func (f suspectFeed) Unfinished(spans []offsets.Span) (left, late []offsets.Span) {
	l := f.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == laneGone {
		return nil, nil // they are another owner's
	}
	now := time.Now()
	for u := range l.units {
		switch {
		case u.feed != f.feed:
		case u.overdue(now) != nil:
			late = append(late, offsets.Intersect(spans, u.span)...)
		default:
			left = append(left, offsets.Intersect(spans, u.span)...)
		}
	}
	if l.isRunning() && f.mayRunWaiting() {
		for _, at := range f.waiting() {
			if offsets.In(spans, at) {
				left = append(left, offsets.Span{First: at, Last: at})
			}
		}
	}
	return offsets.Union(left, nil), offsets.Union(late, nil)
}

// Runs implements isolate.Feed.
func (f suspectFeed) Runs(offset int64) bool {
	l := f.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	for u := range l.units {
		if u.feed == f.feed && u.span.First <= offset && offset <= u.span.Last {
			return l.state != laneGone
		}
	}
	return false
}

// BeginAlone implements isolate.Feed.
func (f suspectFeed) BeginAlone(offset int64, announce func(decoding bool)) {
	f.origin.beginAlone(offset, announce)
}

// EndAlone implements isolate.Feed.
func (f suspectFeed) EndAlone() { f.origin.endAlone() }
