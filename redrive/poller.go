package redrive

import (
	"context"
	"time"

	"github.com/sidingkafka/siding/redrive/internal/inflight"
)

const (
	pollEvery = time.Second
	// pollTimeout bounds one poll.
	pollTimeout = 15 * time.Second
	// pollGrace is how long a run that aborts waits for the poll that is under way. A later poll
	// can find what this one does not.
	pollGrace = 2 * time.Second
)

// pollResult is what a poll of the outcomes found.
type pollResult struct {
	verdicts []inflight.Verdict
	judged   inflight.FirstOutcomes
	idle     []string // groups without members
	lag      int64    // of the groups, on a target that was named
	err      error
}

// poller polls the outcomes of letters beside the engine's loop, one poll at a time, and remembers
// what the last one found. It belongs to the loop.
type poller struct {
	poll    func(context.Context) pollResult
	results chan pollResult
	cancel  context.CancelFunc // of the poll that is under way; nil if none is

	began time.Time // the last poll
	ended time.Time // the last poll
	asOf  time.Time // when the last poll began that found everything
	err   error     // of the last poll

	// a process had the run before; until the first poll it is not known what happened since
	behind bool
	idle   []string
	lag    int64
}

// newPoller is one whose first poll is due at once if a process had the run before.
func newPoller(poll func(context.Context) pollResult, now time.Time, resumed bool) *poller {
	p := &poller{poll: poll, results: make(chan pollResult, 1), behind: resumed}
	if !resumed {
		p.ended = now
	}
	return p
}

func (p *poller) underWay() bool { return p.cancel != nil }

func (p *poller) due(now time.Time) bool { return !p.underWay() && now.Sub(p.ended) >= pollEvery }

// begin begins a poll. Its result comes from results, and goes to take.
func (p *poller) begin(ctx context.Context) {
	ctx, p.cancel = context.WithTimeout(ctx, pollTimeout)
	p.began = time.Now()
	go func() { p.results <- p.poll(ctx) }()
}

// take takes the result of the poll that was under way.
func (p *poller) take(l pollResult) {
	p.cancel()
	p.cancel, p.ended, p.err = nil, time.Now(), l.err
	if l.err == nil {
		p.asOf, p.idle, p.lag, p.behind = p.began, l.idle, l.lag, false
	}
}

// last is the result of the poll that is under way, which is cancelled after a grace.
func (p *poller) last(grace time.Duration) pollResult {
	select {
	case l := <-p.results:
		return l
	case <-time.After(grace):
		p.cancel()
		return <-p.results
	}
}

// close waits for the poll that is under way, after its context has ended.
func (p *poller) close() {
	if p.underWay() {
		<-p.results
		p.cancel()
	}
}
