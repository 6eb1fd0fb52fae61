package consumer

import (
	"slices"

	"github.com/sidingkafka/siding/consumer/internal/offsets"
)

// startedAt notes that kgo is given where the lane's source starts.
func (l *lane) startedAt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.intake = intakeOpen; l.startUnknown {
		l.intake = intakeReseeking
	}
}

// setStart notes where the source of a lane begins.
func (l *lane) setStart(at startPosition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == laneStarting && !l.positionsLoaded {
		l.source.tracker, l.source.epoch = offsets.New(at.next.Offset, at.committed), at.next.Epoch
	}
}

// awaitsStart reports whether the lane's start is still to be found.
func (l *lane) awaitsStart() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.startUnknown && l.state < laneDraining
}

// committedEverywhere reports whether each partition of the lane has a committed offset. A lane
// that is being given up needs none.
func (l *lane) committedEverywhere() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != laneStarting {
		return true
	}
	for f := range l.read() {
		if f.tracker.Committed < 0 {
			return false
		}
	}
	return l.positionsLoaded
}

// isOwnedBy reports whether the lane is held, under that member id.
func (l *lane) isOwnedBy(member string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state != laneGone && l.member == member
}

// disown notes that the group went on without the member. kgo joins again then, a static member
// under its old id, and may keep the partition although others owned it meanwhile; so the lane
// counts as held by nobody, and starts anew with the next session. (An expelled member's new id
// tells by itself; under KIP-848 kgo reports such partitions lost.)
func (l *lane) disown() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.member = ""
}

// reads reports whether the lane has a feed of that tier.
func (l *lane) reads(tier string) bool {
	return slices.ContainsFunc(l.tiers(), func(f *tierFeed) bool { return f.topic == tier && !f.parked.Retired() })
}
