package serve

import (
	"context"
	"net/http"
	"time"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/failure"
)

// enter keeps a request to the limits of its sender, who is nil while nobody knows them. ctx ends
// when the request has taken as long as it may; the caller calls end after the answer. The error is
// a problem, and the headers say when to ask again.
func (s *Server) enter(w http.ResponseWriter, r *http.Request, who *access.Identity, length access.Length) (ctx context.Context, end func(), err error) {
	sender := s.senderOf(r, who)
	if !s.limits.allow(sender) {
		w.Header().Set("Retry-After", "1")
		return nil, nil, failure.NewProblem(api.TooManyRequests, "%s sends more than %d requests a second: wait a second", sender, requestsPerSecond)
	}
	ok, most := true, usualTime
	leave := func() {}
	switch length {
	case access.Usual:
	case access.Live:
		leave, ok = s.limits.begin(s.limits.live, sender, liveAtOnce)
		most = 0
	case access.Long, access.Stream:
		leave, ok = s.limits.begin(s.limits.long, sender, longAtOnce)
		if most = longTime; length == access.Stream {
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
		_ = control.SetReadDeadline(time.Now().Add(bodyTime))
	}
	if most == 0 { // a stream sets limits of its own
		return r.Context(), leave, nil
	}
	_ = control.SetWriteDeadline(time.Now().Add(most + answerTime))
	ctx, cancel := context.WithTimeout(r.Context(), most)
	return ctx, func() { cancel(); leave() }, nil
}

// senderOf returns the name by which limits know the sender of a request.
func (s *Server) senderOf(r *http.Request, who *access.Identity) string {
	switch who {
	case nil:
		return "nobody at " + s.who.Address(r)
	case access.Guest:
		return "whoever signs in at " + s.who.Address(r)
	}
	return who.Name
}
