package admit

import (
	"context"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/failure"
)

// Gate admits requests. It is safe for concurrent use.
type Gate struct {
	who    *access.Authenticator
	limits *limits
}

// New returns a gate that asks an authenticator who sends a request.
func New(who *access.Authenticator) *Gate {
	return &Gate{who, newLimits(requestsPerSecond, requestsAtOnce)}
}

// Who returns who sends a request.
func (g *Gate) Who(r *http.Request) (*access.Identity, error) { return g.who.Who(r) }

// Admit keeps a request to the limits of its sender, who is nil while unknown. ctx ends when the
// request has taken as long as it may; the caller calls end after the answer. The error is a
// problem, and the headers say when to ask again.
func (g *Gate) Admit(w http.ResponseWriter, r *http.Request, who *access.Identity, length access.Length) (ctx context.Context, end func(), err error) {
	sender := g.senderOf(r, who)
	if !g.limits.allow(sender) {
		w.Header().Set("Retry-After", "1")
		return nil, nil, failure.NewProblem(api.TooManyRequests, "%s sends more than %d requests a second: wait a second", sender, requestsPerSecond)
	}
	ok, most := true, usualTime
	leave := func() {}
	switch length {
	case access.Usual:
	case access.Live:
		leave, ok = g.limits.begin(g.limits.live, sender, liveAtOnce)
		most = 0
	case access.Long, access.Stream:
		leave, ok = g.limits.begin(g.limits.long, sender, longAtOnce)
		if most = access.LongTime; length == access.Stream {
			most = 0
		}
	}
	if !ok {
		w.Header().Set("Retry-After", "10")
		return nil, nil, failure.NewProblem(api.TooManyRequests, "%s has too many requests under way that may take long: wait until one has ended", sender)
	}
	control := http.NewResponseController(w) // not every writer has limits
	if r.Body != nil && r.Body != http.NoBody {
		// net/http lifts it when the body is read.
		_ = control.SetReadDeadline(time.Now().Add(BodyTime))
	}
	if most == 0 { // a stream sets limits of its own
		return r.Context(), leave, nil
	}
	_ = control.SetWriteDeadline(time.Now().Add(most + AnswerTime))
	ctx, cancel := context.WithTimeout(r.Context(), most)
	return ctx, func() { cancel(); leave() }, nil
}

// senderOf returns the name by which limits know the sender of a request.
func (g *Gate) senderOf(r *http.Request, who *access.Identity) string {
	switch who {
	case nil:
		return "nobody at " + g.who.Address(r)
	case access.Guest:
		return "whoever signs in at " + g.who.Address(r)
	}
	return who.Name
}

// Limited answers any sender, within the limits. err is why the sender is unknown.
func (g *Gate) Limited(h func(w http.ResponseWriter, r *http.Request, id *access.Identity, err error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, err := g.who.Who(r)
		if err != nil {
			id = nil
		}
		ctx, end, refused := g.Admit(w, r, id, access.Usual)
		if refused != nil {
			WriteProblem(w, refused)
			return
		}
		defer end()
		h(w, r.WithContext(ctx), id, err)
	})
}

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
