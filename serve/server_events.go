package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/patient"
	"github.com/sidingkafka/siding/serve/internal/request"
)

const (
	// eventsEvery is how often a run is looked at for those who follow it. It costs the brokers
	// nothing: they follow what the server knows.
	eventsEvery = 500 * time.Millisecond
	// quietFor is how long nothing may be written to a client that follows a run.
	quietFor = 15 * time.Second
	// followFor is how long a stream lasts. The client asks again then, and its role is asked, too.
	followFor = 5 * time.Minute
	// eventTime is how long a client may take for an event.
	eventTime = 10 * time.Second
)

// runEvent is the state of a run at a moment. It has no id if there was nothing new for a while.
type runEvent struct {
	id  string
	run api.Run
}

// eventID names the state of a run, so that a client that has it gets later ones only: when it was
// recorded, and by which claim, since the clocks of processes differ.
func eventID(r *api.Run) string {
	at := r.Heartbeat
	for _, t := range []*time.Time{r.Stopped, r.Ended} {
		if t != nil && t.After(at) {
			at = *t
		}
	}
	return fmt.Sprintf("%d-%s-%s", at.UnixMilli(), r.State, r.Claim)
}

// later reports whether a client that has one state lacks the other.
func later(id, has string) bool {
	at, rest, _ := strings.Cut(id, "-")
	hadAt, hadRest, ok := strings.Cut(has, "-")
	now, err1 := strconv.ParseInt(at, 10, 64)
	had, err2 := strconv.ParseInt(hadAt, 10, 64)
	if !ok || err1 != nil || err2 != nil {
		return true // it has none, or one of another program
	}
	_, claim, _ := strings.Cut(rest, "-")
	_, hadClaim, _ := strings.Cut(hadRest, "-")
	return now > had || claim != hadClaim
}

// claimOf returns the claim in an id of an event; empty if it has none.
func claimOf(id string) string {
	_, rest, _ := strings.Cut(id, "-")
	_, claim, _ := strings.Cut(rest, "-")
	return claim
}

// followRun yields the states of a run that the client does not have, until the run ended, the
// server ends, ctx ends, or the client is not known any more. more is false if the client has the
// last one.
func (s *Server) followRun(ctx context.Context, in *request.Events) (events iter.Seq[runEvent], more bool, err error) {
	t, err := s.topicFor(ctx, in.Topic.Topic, access.Viewer)
	if err != nil {
		return nil, false, err
	}
	server, err := s.runner.running()
	if err != nil {
		return nil, false, err
	}
	o, err := s.outcomeOf(ctx, t, in.Run.Run)
	if err == nil && claimOf(in.LastEventID) != o.Claim && in.LastEventID != "" {
		// The client knows another claim: perhaps a later one, of which this server has not heard.
		if o, err = s.redriver.Progress(ctx, in.Topic.Topic, in.Run.Run); err == nil {
			t.Saw(o)
		}
	}
	if err != nil {
		return nil, false, s.problemOn(ctx, t, err)
	}
	now := s.runAs(t, &o)
	over := func(r *api.Run) bool { return r.Ended != nil || r.State == "done" || r.State == "aborted" }
	if over(&now) && !later(eventID(&now), in.LastEventID) {
		return nil, false, nil
	}
	return func(yield func(runEvent) bool) {
		has, told := in.LastEventID, time.Now()
		last := time.NewTimer(followFor)
		defer last.Stop()
		for {
			switch id := eventID(&now); {
			case (later(id, has) || time.Since(told) > quietFor) && !access.Stays(ctx):
				return
			case later(id, has):
				if has, told = id, time.Now(); !yield(runEvent{id, now}) {
					return
				}
			case time.Since(told) > quietFor:
				if told = time.Now(); !yield(runEvent{}) {
					return
				}
			}
			if over(&now) {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-server.Done():
				return
			case <-last.C:
				return
			case <-time.After(eventsEvery):
			}
			if o, err := s.outcomeOf(ctx, t, in.Run.Run); err == nil {
				now = s.runAs(t, &o)
			}
		}
	}, true, nil
}

// streamRun answers with the states of a run as server-sent events.
func (s *Server) streamRun(ctx context.Context, in *request.Events) (*huma.StreamResponse, error) {
	events, more, err := s.followRun(ctx, in)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		if !more { // a browser then asks no more
			hc.SetStatus(http.StatusNoContent)
			return
		}
		hc.SetHeader("Content-Type", "text/event-stream")
		hc.SetHeader("X-Accel-Buffering", "no") // of nginx
		_, w := humago.Unwrap(hc)
		out := patient.New(w, eventTime)
		defer out.End()
		for e := range events {
			text := ": nothing new\n\n"
			if e.id != "" {
				data, err := json.Marshal(e.run)
				if err != nil {
					return
				}
				text = fmt.Sprintf("id: %s\nevent: run\ndata: %s\n\n", e.id, data)
			}
			if out.Send([]byte(text)) != nil {
				return
			}
		}
	}}, nil
}
