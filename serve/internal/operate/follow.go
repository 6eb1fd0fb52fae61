package operate

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
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
)

// runEvent is the state of a run at a moment. It has no id if there was nothing new for a while.
type runEvent struct {
	ID  string
	Run api.Run
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

// FollowRun yields the states of a run that the client does not have, until the run ended, the
// server ends, ctx ends, or the client is not known any more. more is false if the client has the
// last one.
func FollowRun(ctx context.Context, d *Desk, who *access.Identity, in *request.Events) (events iter.Seq[runEvent], more bool, err error) {
	t, err := TopicFor(ctx, d, who, in.Topic.Topic, access.Viewer)
	if err != nil {
		return nil, false, err
	}
	server, err := d.Runner.Running()
	if err != nil {
		return nil, false, err
	}
	o, err := outcomeOf(ctx, d, t, in.Run.Run)
	if err == nil && claimOf(in.LastEventID) != o.Claim && in.LastEventID != "" {
		// The client knows another claim: perhaps a later one, of which this server does not know.
		if o, err = d.cfg.Redriver.Progress(ctx, in.Topic.Topic, in.Run.Run); err == nil {
			t.Observe(o)
		}
	}
	if err != nil {
		return nil, false, problemOn(ctx, d, t, err)
	}
	now := runAs(d, t, &o)
	over := func(r *api.Run) bool { return r.Ended != nil || r.State == "done" || r.State == "aborted" }
	if over(&now) && !later(eventID(&now), in.LastEventID) {
		return nil, false, nil
	}
	return func(yield func(runEvent) bool) {
		has, sent := in.LastEventID, time.Now()
		last := time.NewTimer(followFor)
		defer last.Stop()
		for {
			switch id := eventID(&now); {
			case (later(id, has) || time.Since(sent) > quietFor) && !access.Stays(ctx):
				return
			case later(id, has):
				if has, sent = id, time.Now(); !yield(runEvent{id, now}) {
					return
				}
			case time.Since(sent) > quietFor:
				if sent = time.Now(); !yield(runEvent{}) {
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
			if o, err := outcomeOf(ctx, d, t, in.Run.Run); err == nil {
				now = runAs(d, t, &o)
			}
		}
	}, true, nil
}
