package admit

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits of requests to the API and to the console.
const (
	// requestsPerSecond and requestsAtOnce bound the requests of one sender.
	requestsPerSecond = 50
	requestsAtOnce    = 200
	// longAtOnce bounds what a sender does at the same time that may take long: exports, streams,
	// and what reads a whole topic. Each reading holds an answer of the brokers in memory, whose
	// records may be many times as large as they came.
	longAtOnce = 20
	// liveAtOnce bounds the pages of the console that a sender follows at the same time.
	liveAtOnce = 200
	// mostSenders bounds the senders that are remembered.
	mostSenders = 10_000
	// usualTime bounds a request, and access.LongTime one that reads a whole topic.
	usualTime = 30 * time.Second
	// AnswerTime is for the answer after that. franz-go gives up a connection on which brokers say
	// nothing only when it has tried each request that waits for it, for ten seconds.
	AnswerTime = time.Minute
	// BodyTime and MostBody bound what a client sends; MostValue if it may have a record's value.
	BodyTime  = 10 * time.Second
	MostBody  = 256 << 10
	MostValue = 16 << 20
)

// limits bound how often each sender may ask. They are safe for concurrent use.
type limits struct {
	perSecond rate.Limit
	atOnce    int

	mu sync.Mutex
	of map[string]*rate.Limiter
	// long is what may take long and goes on, by sender, and live the pages that are followed.
	long, live map[string]int
}

func newLimits(perSecond float64, atOnce int) *limits {
	return &limits{perSecond: rate.Limit(perSecond), atOnce: atOnce, of: map[string]*rate.Limiter{}, long: map[string]int{}, live: map[string]int{}}
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

// begin counts something of a sender in a table, until end is called. It reports false if the
// sender does as much of it already as is allowed.
func (l *limits) begin(table map[string]int, sender string, most int) (end func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if table[sender] >= most {
		return nil, false
	}
	table[sender]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if table[sender]--; table[sender] == 0 {
			delete(table, sender)
		}
	}, true
}

// forget drops the senders who have not asked for a while; all, if none is left out.
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
