package serve

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits of requests to the API.
const (
	// requestsPerSecond and requestsAtOnce bound the requests of one sender.
	requestsPerSecond = 50
	requestsAtOnce    = 200
	// longAtOnce bounds what a sender does at the same time that may take long: exports, streams,
	// and what reads a whole topic.
	longAtOnce = 20
	// mostSenders bounds the senders that are remembered.
	mostSenders = 10_000
	// usualTime bounds a request, and longTime one that reads a whole topic.
	usualTime = 30 * time.Second
	longTime  = 10 * time.Minute
	// answerTime is how long a client may take for the answer.
	answerTime = 30 * time.Second
	// bodyTime and mostBody bound what a client sends; mostValue if it may have a record's value.
	bodyTime  = 10 * time.Second
	mostBody  = 256 << 10
	mostValue = 16 << 20
)

// limits bound how often each sender may ask. They are safe for concurrent use.
type limits struct {
	perSecond rate.Limit
	atOnce    int

	mu   sync.Mutex
	of   map[string]*rate.Limiter
	long map[string]int // what may take long and goes on, by sender
}

func newLimits(perSecond float64, atOnce int) *limits {
	return &limits{perSecond: rate.Limit(perSecond), atOnce: atOnce, of: map[string]*rate.Limiter{}, long: map[string]int{}}
}

// allow reports whether a sender may ask now.
func (l *limits) allow(sender string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	is := l.of[sender]
	if is == nil {
		if len(l.of) >= mostSenders {
			l.forget()
		}
		is = rate.NewLimiter(l.perSecond, l.atOnce)
		l.of[sender] = is
	}
	return is.Allow()
}

// begin counts something of a sender that may take long, until end is called. It reports false if
// the sender does too much of it already.
func (l *limits) begin(sender string) (end func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.long[sender] >= longAtOnce {
		return nil, false
	}
	l.long[sender]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.long[sender]--; l.long[sender] == 0 {
			delete(l.long, sender)
		}
	}, true
}

// forget drops the senders who have not asked for a while; all, if nobody is left out.
func (l *limits) forget() {
	for sender, is := range l.of {
		if is.Tokens() >= float64(l.atOnce) {
			delete(l.of, sender)
		}
	}
	if len(l.of) >= mostSenders {
		clear(l.of)
	}
}
