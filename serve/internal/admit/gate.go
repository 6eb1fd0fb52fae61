package admit

import (
	"context"
	"net/http"
	"time"

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
