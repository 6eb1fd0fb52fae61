package operate

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/sidingkafka/siding/redrive"
)

// Recorder records outcomes of letters that became known after their runs had ended: by the clock,
// for the owner of the topic, and before something depends on them. It is safe for concurrent use.
type Recorder struct {
	redriver *redrive.Redriver
	log      *slog.Logger
	places   chan struct{} // has an element for each look by the clock

	mu    sync.Mutex
	looks map[string]*look // by topic
}

// look is what the recorder knows of a topic.
type look struct {
	busy   bool
	next   time.Time
	logged string // the error that was logged last
}

// A look for outcomes reads the ledger, and what the retry topics got since the run began. So it
// takes a hundredth of the time at most, and a topic is looked at each half minute at most.
const (
	looksAtOnce  = 3
	lookEvery    = 30 * time.Second
	lookShare    = 100
	longestLook  = 15 * time.Minute
	latestToLook = time.Hour
)

func newRecorder(r *redrive.Redriver, log *slog.Logger) *Recorder {
	return &Recorder{redriver: r, log: log, places: make(chan struct{}, looksAtOnce), looks: map[string]*look{}}
}

// Record records the outcomes that a topic lacks. An error is logged, and no other one: what is not
// known yet stays pending.
func (r *Recorder) Record(ctx context.Context, topic string) {
	_, err := r.redriver.WriteOutcomes(ctx, topic)
	if ctx.Err() != nil {
		return
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	r.mu.Lock()
	of := r.of(topic)
	isNew := of.logged != text
	of.logged = text
	r.mu.Unlock()
	if err != nil && isNew {
		r.log.Warn("siding: the outcomes of earlier runs could not be recorded; the server tries again", "topic", topic, "error", err)
	}
}

// of returns what is known of a topic. mu is held.
func (r *Recorder) of(topic string) *look {
	if r.looks[topic] == nil {
		r.looks[topic] = &look{}
	}
	return r.looks[topic]
}

// LookAt records the outcomes of a topic in the background, when it is time, if it lacks any.
func (r *Recorder) LookAt(ctx context.Context, topic string, lacks func() bool, running *sync.WaitGroup) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.of(topic)
	if of.busy || time.Now().Before(of.next) || !lacks() {
		return
	}
	select {
	case r.places <- struct{}{}:
	default:
		return // the next round comes
	}
	of.busy = true
	running.Go(func() {
		defer func() { <-r.places }()
		began := time.Now()
		within, cancel := context.WithTimeout(ctx, longestLook)
		defer cancel()
		r.Record(within, topic)
		r.mu.Lock()
		defer r.mu.Unlock()
		took := time.Since(began)
		of.busy, of.next = false, time.Now().Add(min(max(lookEvery, lookShare*took), latestToLook))
	})
}
