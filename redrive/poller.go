package redrive

// Polls the outcomes beside the engine.

import (
	"context"
	"time"

	"github.com/sidingkafka/siding/redrive/internal/inflight"
)

const (
	pollEvery = time.Second
	// pollTimeout bounds a poll.
	pollTimeout = 15 * time.Second
	// pollGrace is how long an aborting run waits for the poll under way. That poll can find
	// outcomes that a later one cannot.
	pollGrace = 2 * time.Second
)

// pollResult is the result of a poll of the outcomes.
type pollResult struct {
	verdicts []inflight.Verdict
	judged   inflight.FirstOutcomes
	idle     []string // groups without members
	lag      int64    // of the groups, on a named target
	held     string   // the open transaction behind which letters are; empty for none
	err      error
}

// poller polls the outcomes of letters in a goroutine, one poll at a time, and keeps the last
// result. It belongs to the engine's loop.
type poller struct {
	poll    func(context.Context) pollResult
	results chan pollResult
	cancel  context.CancelFunc // of the poll that is under way; nil if none is

	began time.Time // begin of the last poll
	ended time.Time // end of the last poll
	asOf  time.Time // begin of the last poll without an error
	err   error     // of the last poll

	// an earlier process owned the run, and no poll has found its letters' outcomes yet
	behind bool
	idle   []string
	lag    int64
	held   string
}

// newPoller returns a poller. Its first poll is due at once if the run was resumed.
func newPoller(poll func(context.Context) pollResult, now time.Time, resumed bool) *poller {
	p := &poller{poll: poll, results: make(chan pollResult, 1), behind: resumed}
	if !resumed {
		p.ended = now
	}
	return p
}

func (p *poller) underWay() bool { return p.cancel != nil }

func (p *poller) due(now time.Time) bool { return !p.underWay() && now.Sub(p.ended) >= pollEvery }

// begin begins a poll. Its result arrives on results, and goes to take.
func (p *poller) begin(ctx context.Context) {
	ctx, p.cancel = context.WithTimeout(ctx, pollTimeout)
	p.began = time.Now()
	go func() { p.results <- p.poll(ctx) }()
}

// take keeps the result of the poll under way.
func (p *poller) take(result pollResult) {
	p.cancel()
	p.cancel, p.ended, p.err = nil, time.Now(), result.err
	if result.err == nil {
		p.asOf, p.idle, p.lag, p.held, p.behind = p.began, result.idle, result.lag, result.held, false
	}
}

// last waits for the poll under way, cancels it after a grace, and returns its result.
func (p *poller) last(grace time.Duration) pollResult {
	select {
	case result := <-p.results:
		return result
	case <-time.After(grace):
		p.cancel()
		return <-p.results
	}
}

// close waits for the poll under way. Its context must have ended.
func (p *poller) close() {
	if p.underWay() {
		<-p.results
		p.cancel()
	}
}
