package redrive

// The log throttle of a run.

import (
	"context"
	"time"
)

// logEvery is the least interval between equal messages, and maxLogged the most messages that a
// throttle remembers.
const (
	logEvery  = 10 * time.Second
	maxLogged = 1_000
)

// throttle remembers recently reported messages. The zero value is ready to use.
type throttle struct{ logged map[string]time.Time }

// first reports whether a message was not reported within the last ten seconds, and remembers it.
func (t *throttle) first(message string) bool {
	now := time.Now()
	if now.Sub(t.logged[message]) < logEvery {
		return false
	}
	// forgetting may repeat a message, but bounds the memory
	if t.logged == nil || len(t.logged) >= maxLogged {
		t.logged = map[string]time.Time{}
	}
	t.logged[message] = now
	return true
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
