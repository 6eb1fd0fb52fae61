package consumer

import (
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/sidingkafka/siding/internal/commitmark"
)

// laneMark is what commits say about a lane, for people who look from outside the process: why its
// records do not run, and which release runs them. See DESIGN.md, "The committed floor".
//
// logBlocked looks every few seconds, since no event comes when a lane is blocked; the next commit
// then says what has changed. So a lane that flaps costs a commit a look at most.
type laneMark struct{ *lane }

// look looks at the lane's state again.
func (l laneMark) look(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.source.says = l.current(now)
}

// current returns what a commit has to say; the caller holds the lock. While a state lasts, its
// beginning is the first one that was said: each copy that gets through would move it.
func (l laneMark) current(now time.Time) commitmark.Lane {
	said := commitmark.OfRelease(l.c.cfg.Version)
	if l.state == laneStarting || l.state >= laneDraining {
		return said
	}
	seen := inspection(l)
	h := LaneHealth{Since: l.since}
	switch seen.healthState(now, &h) {
	case StateStopped:
		said.State = commitmark.Stopped
	case StateStuck:
		said.State = commitmark.Stuck
	case StatePaused:
		said.State, h.Since = commitmark.Paused, time.Time{}
	case StateBlocked:
		said.State = l.blockedBy(now)
	}
	if said.State != 0 {
		said.Since = h.Since
		if was := l.source.says; was.State == said.State {
			said.Since = was.Since
		}
	}
	if sum := seen.awaited(); sum.N > 0 {
		said.OpenSince = sum.Since
	}
	return said.Short()
}

// blockedBy returns why a blocked lane is blocked; the caller holds the lock. That no commit is
// accepted is left to the others: no commit can say it.
func (l laneMark) blockedBy(now time.Time) commitmark.LaneState {
	wait, _ := l.c.throttles.Now(now)
	if _, err := l.copies.Trouble(now, blockedAfter+wait); err != nil {
		switch {
		case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed):
			return commitmark.Denied
		case errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.UnknownTopicID):
			return commitmark.Missing
		}
		return commitmark.Refused
	}
	if _, why := inspection(l).failingFeed(now); why != "" {
		return commitmark.Unreadable
	}
	return 0
}
