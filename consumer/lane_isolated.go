package consumer

import (
	"time"

	"github.com/sidingkafka/siding/consumer/internal/isolate"
)

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
	n := len(inspection{l}.overdue(now))
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
			see(suspectFeed{f}, suspectFeed{f}.state())
		}
	}
}
