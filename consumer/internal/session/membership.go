package session

import (
	"context"
	"sync"
	"time"
)

// Membership is the lock of commits, which also knows whether the member is joining. kgo holds
// commits back then, on a lock that no context ends; so siding waits by itself.
//
// kgo ends every session with a revoke or a loss, and begins every one with an assignment, each of
// which may be empty. So a join is under way from the end of the one callback to the beginning of
// the next. See DESIGN.md, "Membership and commits".
type Membership struct {
	lock    chan struct{} // holds one token; a channel, so that waiting for it can be given up
	joining bool          // guarded by lock
	settled chan struct{} // closed when a join is over; guarded by lock

	mu       sync.Mutex
	cancel   context.CancelFunc // ends the commit that is under way
	reported Health             // what health tells; its Since is zero before Run
	within   time.Duration      // how long a join or failing commits may take
	ever     bool               // it has joined once
	refuse   int                // times that the member was refused before
}

// NewMembership makes the membership of a consumer that has yet to join.
func NewMembership() *Membership {
	return &Membership{lock: make(chan struct{}, 1), joining: true, settled: make(chan struct{})}
}

// Hold takes the lock at a moment when the member is not joining. The context that it returns ends
// with ctx, and when the membership is lost.
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
		settled := m.settled
		<-m.lock
		select {
		case <-settled:
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

// SetJoining says whether a join is under way; it waits for the commit that is.
func (m *Membership) SetJoining(joining bool) {
	m.lock <- struct{}{}
	defer func() { <-m.lock }()
	switch {
	case m.joining == joining:
	case joining:
		m.settled = make(chan struct{})
	default:
		close(m.settled)
	}
	m.joining = joining
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reported.Joined == joining {
		m.reported.Joined, m.reported.Since, m.reported.Why = !joining, time.Now(), ""
	}
	m.ever = m.ever || !joining
}

// Begin is called by Run. A join that takes longer than within is trouble, and so are commits that
// fail for that long.
func (m *Membership) Begin(within time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reported.Since, m.within = time.Now(), within
}

// End is called when Run ended cleanly: who joins no more is not late.
func (m *Membership) End() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reported = Health{}
}

// NoteJoinError notes what a try to join, or a session, ended with.
func (m *Membership) NoteJoinError(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.reported.Joined {
		m.reported.Why = err.Error()
	}
}

// Refused notes that the group's coordinator, or a broker, refused who asks. It reports whether
// that keeps the member from starting: it was refused time and again, and never joined.
func (m *Membership) Refused() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refuse++
	return !m.ever && m.refuse > 3
}

// NoteCommit notes how a commit of all that is finished went, which began at that time.
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

// Health tells how the consumer stands in its group, and whether that is as it should be.
func (m *Membership) Health(now time.Time) (h Health, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h = m.reported
	late := func(since time.Time) bool { return !since.IsZero() && now.Sub(since) > m.within }
	return h, !late(h.CommitsFailSince) && (h.Joined || !late(h.Since))
}

// Lost is set(true) after a loss: the commit that is under way is void, and is not waited for.
func (m *Membership) Lost() {
	m.mu.Lock()
	if m.cancel != nil {
		m.cancel()
	}
	m.mu.Unlock()
	m.SetJoining(true)
}

// Health says whether the member is in its group, and whether its commits succeed. The fields
// are those of the consumer's GroupHealth, which converts from it.
type Health struct {
	Joined           bool
	Since            time.Time
	Why              string
	CommitsFailSince time.Time
	CommitError      string
}
