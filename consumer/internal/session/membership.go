package session

import (
	"context"
	"sync"
	"time"
)

// Membership is the lock of commits, and tracks whether the member is joining. While it joins, kgo
// would hold a commit back, on a lock that no context ends. So siding does the waiting itself. The
// methods are safe for concurrent use.
//
// kgo ends every session with a revoke or a loss, and begins every session with an assignment; each
// may be empty. So a join lasts from the end of a revoke or loss to the beginning of the next
// assignment. See DESIGN.md, "Membership and commits".
type Membership struct {
	lock    chan struct{} // holds one token; a channel, so that a context can end the wait for it
	joining bool          // guarded by lock
	joined  chan struct{} // closed when a join is over; guarded by lock

	mu       sync.Mutex
	cancel   context.CancelFunc // ends the commit in flight
	reported Health             // what Health returns; its Since is zero before Run
	within   time.Duration      // how long a join or failing commits may take
	ever     bool               // the member has joined once
	refuse   int                // times that a broker refused the member
	kept     time.Time          // since when the member has not been lost; zero after a loss
	unkept   time.Time          // since when it has been lost again and again; zero if it was not
	lost     time.Time          // the last loss
	lostBy   string             // the error of the last loss
}

// NewMembership makes the membership of a consumer that has not joined yet.
func NewMembership() *Membership {
	return &Membership{lock: make(chan struct{}, 1), joining: true, joined: make(chan struct{})}
}

// Hold waits until the member is not joining, and takes the lock. held ends with ctx, and when the
// membership is lost. The caller calls release. The error is that of ctx.
func (m *Membership) Hold(ctx context.Context) (held context.Context, release func(), err error) {
	for {
		select {
		case m.lock <- struct{}{}:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
		if !m.joining {
			break
		}
		joined := m.joined
		<-m.lock
		select {
		case <-joined:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
	held, cancel := context.WithCancel(ctx)
	m.mu.Lock()
	m.cancel = cancel
	m.mu.Unlock()
	return held, func() {
		cancel()
		<-m.lock
	}, nil
}

// SetJoining registers that a join begins or is over. It waits for the commit in flight.
func (m *Membership) SetJoining(joining bool) {
	m.lock <- struct{}{}
	defer func() { <-m.lock }()
	switch {
	case m.joining == joining:
	case joining:
		m.joined = make(chan struct{})
	default:
		close(m.joined)
	}
	m.joining = joining
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reported.Joined == joining {
		m.reported.Joined, m.reported.Since, m.reported.Why = !joining, time.Now(), ""
	}
	m.ever = m.ever || !joining
	if !joining && m.kept.IsZero() {
		m.kept = time.Now()
	}
}

// Begin is called by Run. A join that takes longer than within makes the health bad. So do commits
// that fail for that long, and a membership that is lost again and again for that long.
func (m *Membership) Begin(within time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reported.Since, m.within = time.Now(), within
}

// End is called when Run ended cleanly. It resets the health, so that the member's leaving does not
// look like a late join.
func (m *Membership) End() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reported, m.unkept = Health{}, time.Time{}
}

// NoteJoinError registers the error that ended a session or a try to join.
func (m *Membership) NoteJoinError(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lostBy = err.Error()
	if !m.reported.Joined {
		m.reported.Why = m.lostBy
	}
}

// Refused registers that the group's coordinator, or a broker, refused this user. It reports
// whether the consumer should give up its start: the member never joined, and was refused more than
// three times.
func (m *Membership) Refused() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refuse++
	return !m.ever && m.refuse > 3
}

// NoteCommit registers the result of a commit of all floors that began at the given time.
func (m *Membership) NoteCommit(began time.Time, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil:
		m.reported.CommitsFailSince, m.reported.CommitError = time.Time{}, ""
	case m.reported.CommitsFailSince.IsZero():
		m.reported.CommitsFailSince = began
		fallthrough
	default:
		m.reported.CommitError = err.Error()
	}
}

// Health returns the state of the membership. ok is false if a join, failing commits or repeated
// losses last longer than Begin allows.
func (m *Membership) Health(now time.Time) (h Health, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h = m.reported
	late := func(since time.Time) bool { return !since.IsZero() && now.Sub(since) > m.within }
	ok = !late(h.CommitsFailSince) && (h.Joined || !late(h.Since))
	// Each join starts h.Since anew, so it does not show that the member is lost after each.
	if m.lost.Sub(m.unkept) > m.within && !m.unkept.IsZero() && !late(m.kept) {
		ok = false
		h.Why = "no membership has lasted since " + m.unkept.UTC().Format(time.RFC3339) + ": " + m.lostBy
	}
	return h, ok
}

// countLoss counts that the membership was lost. One that was kept for long enough is no part of a
// row of losses.
func (m *Membership) countLoss(now time.Time) {
	switch {
	case m.kept.IsZero(): // a join failed
		return
	case now.Sub(m.kept) > m.within:
		m.unkept = time.Time{}
	case m.unkept.IsZero():
		m.unkept = m.kept
	}
	m.kept, m.lost = time.Time{}, now
}

// Lost is SetJoining(true) after a loss. It ends the commit in flight, which is void, instead of
// waiting for it.
func (m *Membership) Lost() {
	m.mu.Lock()
	if m.cancel != nil {
		m.cancel()
	}
	m.countLoss(time.Now())
	m.mu.Unlock()
	m.SetJoining(true)
}

// Health is the state of a membership. Its fields are those of the consumer's GroupHealth, which is
// converted from it and documents them.
type Health struct {
	Joined           bool
	Since            time.Time
	Why              string
	CommitsFailSince time.Time
	CommitError      string
}
