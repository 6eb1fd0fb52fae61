package consumer

import (
	"time"

	"github.com/sidingkafka/siding/consumer/internal/isolate"
	"github.com/sidingkafka/siding/consumer/internal/offsets"
)

// suspectFeed is a feed as an [isolate.Isolator] has it.
type suspectFeed struct{ *feed }

// isolationState returns what decides about the feed's records; the caller holds the lane's lock.
func (f suspectFeed) state() *isolate.State {
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
	if do(f.state()); f.window.Asked() != before {
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
func (f suspectFeed) BeginAlone(offset int64, announce func(isDecoding bool)) {
	f.origin.beginAlone(offset, announce)
}

// EndAlone implements isolate.Feed.
func (f suspectFeed) EndAlone() { f.origin.endAlone() }
