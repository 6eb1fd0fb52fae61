package consumer

import (
	"time"

	"github.com/sidingkafka/siding/consumer/internal/offsets"
)

// startedAt records that kgo has a start for the lane's source. If the start is not known yet, kgo
// has a placeholder.
func (l *lane) startedAt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.intake = intakeOpen; l.startUnknown {
		l.intake = intakeReseeking
	}
}

// setStart sets where the source of a starting lane begins.
func (l *lane) setStart(at startPosition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == laneStarting && !l.positionsLoaded {
		l.source.start(at)
	}
}

// restart returns where a lane starts that replaces this one on the same log of the source: at the
// floor, with all that the next commit would say. The caller holds the lock.
func (l *lane) restart() startPosition {
	f := &l.source.feed
	now := f.tracker.Commit()
	at := beginAt(now.Floor)
	at.epoch, at.said = f.epoch, offsets.Metadata{Finished: now.Finished, Evidence: f.window.Suspects().Inherit(l.c.process)}
	at.said.Heads, _ = f.heads()
	return at
}

// awaitsStart reports whether the lane's start is still unknown.
func (l *lane) awaitsStart() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.startUnknown && l.state < laneDraining
}

// committedEverywhere reports whether each partition of the lane has a committed offset. A lane
// that is no longer starting needs none.
func (l *lane) committedEverywhere() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != laneStarting {
		return true
	}
	return l.positionsLoaded && !anyRead(l, func(f *feed) bool {
		return f.tracker.Committed < 0 || !f.window.Off() && f.window.Answered() == 0
	})
}

// unsaved returns the feeds with something to commit; the caller holds the lock.
func (l *lane) unsaved(now time.Time) (feeds []*feed) {
	if l.state == laneGone || !l.positionsLoaded {
		return nil
	}
	l.trackFinished()
	for f := range l.read() {
		f.forgetAccidents(now)
		if f.needsCommit(now) {
			feeds = append(feeds, f)
		}
	}
	return feeds
}

// trackFinished gives the tracker what running units have finished. The lane is not gone, and the
// caller holds the lock.
func (l *lane) trackFinished() {
	for u := range l.units {
		if done, some := u.current.finished(); some {
			u.feed.tracker.FinishRange(done.First, done.Last)
		}
	}
}

// asksForCommit reports whether a feed of the lane asks for a commit before the next tick.
func (l *lane) asksForCommit() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state != laneGone && l.positionsLoaded && anyRead(l, func(f *feed) bool { return f.window.IsAsked() })
}

// isOwnedBy reports whether the member with that id owns the lane.
func (l *lane) isOwnedBy(member string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state != laneGone && l.member == member
}

// isLeftOut reports whether the lane has something that the member with that id may not commit.
func (l *lane) isLeftOut(member string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.member != member && len(l.unsaved(time.Now())) > 0
}

// disown records that the group continued without the member. kgo then joins again, a static member
// under its old id, and may keep the partition although others owned it meanwhile. So no member
// owns the lane, and it restarts in the next session. (An expelled member's new id has the same
// effect; under KIP-848 kgo reports such partitions as lost.)
func (l *lane) disown() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.member = ""
}
