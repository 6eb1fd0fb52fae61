package consumer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// State is what a lane is doing, as health reports it.
type State string

const (
	// StateStarting: the lane's siblings and offsets are being found.
	StateStarting State = "starting"
	// StateRunning: records run, or there is nothing to do.
	StateRunning State = "running"
	// StateWaiting: everything that the lane holds waits for its time.
	StateWaiting State = "waiting"
	// StatePaused: by Consumer.Pause.
	StatePaused State = "paused"
	// StateBlocked: copies cannot be written, or records not read; the lane waits until they can.
	StateBlocked State = "blocked"
	// StateStuck: a handler runs past its timeout.
	StateStuck State = "stuck"
	// StateDraining: the partition is being given up.
	StateDraining State = "draining"
	// StateStopped: halted on a record whose disposition is Stop.
	StateStopped State = "stopped"
)

// Health is the state of a consumer.
//
// It is OK when no lane is blocked, stuck or stopped, or has been starting for more than a minute, none had to leave the value of a dead
// letter out, no topic is missing, and the consumer has neither been joining its group nor failed to commit for longer than the rebalance
// timeout (kgo.RebalanceTimeout, 1 m by default) and half a minute. None of the states should fail a liveness probe: a restart helps none of them, except perhaps stuck, where it runs the same record again.
// For readiness, Started is what to look at.
type Health struct {
	OK      bool         `json:"ok"`
	Started bool         `json:"started"` // the first assignment is there, see Ready
	Lanes   []LaneHealth `json:"lanes"`
	Group   GroupHealth  `json:"group"`
	// Missing are the topics that the consumer needs and that do not exist: deleted while it runs, or never made. Health is not OK then.
	Missing []string `json:"missing,omitempty"`
}

// LaneHealth is the state of one lane: a source partition with its retry partitions.
type LaneHealth struct {
	Topic     string        `json:"topic"`
	Partition int32         `json:"partition"`
	State     State         `json:"state"`
	Since     time.Time     `json:"since"` // when it came into this state, or when it was first seen to be
	Why       string        `json:"why,omitempty"`
	Queued    int           `json:"queued"`   // read and not run yet
	Parked    int           `json:"parked"`   // read from retry topics and not due yet
	Forwards  int           `json:"forwards"` // copies on their way
	Running   int           `json:"running"`
	Omitted   int           `json:"omitted"` // dead letters written without their value, since the lane was assigned
	Offsets   []FeedOffsets `json:"offsets"`
}

// FeedOffsets are the positions of one physical partition.
type FeedOffsets struct {
	Topic     string `json:"topic"`
	Committed int64  `json:"committed"` // -1 when there is none
	Floor     int64  `json:"floor"`     // everything below is finished
	Next      int64  `json:"next"`      // everything below was read
	Pending   int    `json:"pending"`   // read and unfinished
}

// blockedAfter is how long copies may go unanswered before their lane counts as blocked: a partition without a leader gives
// no error, only silence.
const blockedAfter = 10 * time.Second

// joinsLate is what a join may take beyond the rebalance timeout, which is how long the group waits for its members.
const joinsLate = 30 * time.Second

// startsWithin is how long a lane may take to start: longer than an election, and than a broker takes to come back.
const startsWithin = time.Minute

// Health returns the state of every lane, sorted by topic and partition.
func (c *Consumer) Health() Health {
	h := Health{Lanes: []LaneHealth{}, Missing: c.topics.absent()}
	h.OK = len(h.Missing) == 0
	select {
	case <-c.ready:
		h.Started = true
	default:
	}
	now := time.Now()
	var ok bool
	h.Group, ok = c.membership.health(now)
	h.OK = h.OK && ok
	for _, l := range c.lanesNow() {
		lh, ok := l.health(now)
		if !ok {
			continue
		}
		h.Lanes = append(h.Lanes, lh)
		switch lh.State {
		case StateBlocked, StateStuck, StateStopped:
			h.OK = false
		case StateStarting:
			h.OK = h.OK && now.Sub(lh.Since) <= startsWithin
		}
		if lh.Omitted > 0 {
			h.OK = false
		}
	}
	slices.SortFunc(h.Lanes, func(a, b LaneHealth) int {
		return cmp.Or(strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return h
}

func (l *lane) health(now time.Time) (LaneHealth, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == laneGone {
		return LaneHealth{}, false
	}
	h := LaneHealth{
		Topic: l.topic, Partition: l.partition, Since: l.since, Why: l.why, Forwards: l.forwards.outstanding, Running: len(l.units),
		Omitted: l.forwards.omitted,
	}
	for _, f := range l.all() {
		if f.retired.Load() {
			continue
		}
		h.Queued += f.queuedCount()
		h.Parked += f.waiting()
		h.Offsets = append(h.Offsets, FeedOffsets{
			Topic: f.topic, Committed: f.tracker.committed, Floor: f.tracker.floor(), Next: f.tracker.next, Pending: f.tracker.pending,
		})
	}
	h.State = l.healthState(now, &h)
	if h.Omitted > 0 {
		h.Why = strings.TrimPrefix(h.Why+"; ", "; ") + fmt.Sprintf("%d dead letters were written to %s without their value, which did not fit: raise its max.message.bytes", h.Omitted, l.siblings.DLQ)
	}
	return h, true
}

func (l *lane) healthState(now time.Time, h *LaneHealth) State {
	switch l.state {
	case laneStarting:
		return StateStarting
	case laneHalted:
		return StateStopped
	case laneDraining:
		return StateDraining
	}
	if a := l.stuckAttempt(now); a != nil {
		h.Since, _ = a.Deadline()
		h.Why = fmt.Sprintf("the handler runs past its timeout on %s/%d/%d", a.from.topic, l.partition, a.off)
		return StateStuck
	}
	if l.forwards.refused > 0 {
		h.Since, h.Why = l.forwards.progress, l.forwards.trouble
		return StateBlocked
	}
	if l.forwards.outstanding > 0 && now.Sub(l.forwards.progress) > blockedAfter {
		h.Since, h.Why = l.forwards.progress, "copies are not acknowledged: does every sibling have a leader and enough in-sync replicas?"
		return StateBlocked
	}
	if since, why := l.failingFeed(now); why != "" {
		h.Since, h.Why = since, why
		return StateBlocked
	}
	if l.c.isPaused(l.topic) {
		h.Why = "by Pause"
		return StatePaused
	}
	if h.Running == 0 && h.Queued == 0 && h.Parked > 0 {
		h.Why = "for records to be due"
		return StateWaiting
	}
	return StateRunning
}

// stuckAttempt returns an attempt of the lane that runs past its timeout although it was told; the caller holds the lock.
func (l *lane) stuckAttempt(now time.Time) *attempt {
	for u := range l.units {
		a := u.current.Load()
		if a == nil {
			continue
		}
		if at, ok := a.Deadline(); ok && now.Sub(at) > stuckAfter {
			return a
		}
	}
	return nil
}

// queuedCount counts what was read and waits for nothing but a worker.
func (f *feed) queuedCount() int {
	if f.isSource() {
		return f.queued
	}
	return f.ready.len()
}

// waiting counts what was read of a tier and waits for its time, in memory or not.
func (f *feed) waiting() int { return len(f.parked) + f.evicted.n }

// watch looks for attempts that ignore their timeout, and says so once each.
func (c *Consumer) watch() {
	now := time.Now()
	for _, l := range c.lanesNow() {
		l.mu.Lock()
		a := l.stuckAttempt(now)
		l.mu.Unlock()
		if a != nil && a.reported.CompareAndSwap(false, true) {
			l.log.Error("siding: a handler ignores its timeout; nothing ends it but itself",
				"feed", a.from.topic, "offset", a.off, "timeout", l.policy.HandlerTimeout)
		}
	}
}

// HealthHandler serves the consumer's health over HTTP: JSON, with status 200 when it is OK and 503 otherwise.
func (c *Consumer) HealthHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := c.Health()
		w.Header().Set("Content-Type", "application/json")
		if !h.OK {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(h) // the client went away: nothing to tell it
	})
}
