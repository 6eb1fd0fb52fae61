package member

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/integration/chaos/internal/outage"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// scripted is the handler of all members: it plays the record's script and tells the journal. While
// what it calls is down, it fails instead.
func scripted(own consumer.Handler, j *trace.Journal, timeout time.Duration, down *outage.State) consumer.Handler {
	p := player{own: own, journal: j, timeout: timeout, down: down}
	return p.handle
}

// player plays scripts.
type player struct {
	own     consumer.Handler // the team's, or nil
	journal *trace.Journal
	timeout time.Duration
	down    *outage.State
}

func (p player) handle(ctx context.Context, r *kgo.Record) error {
	played := false
	err := consumer.Decode(p.decode, func(ctx context.Context, r *kgo.Record, s trace.Script) error {
		played = true
		return p.play(ctx, r, s)
	})(ctx, r)
	// The time was over before the handler began, for example in a process that was suspended.
	if s, ok := trace.ParseScript(r.Headers); ok && !played && err != nil {
		p.end(p.start(ctx, r, s), verdictOf(ctx, err), false)
	}
	return err
}

// decode returns the record's script, or kills its process.
func (p player) decode(ctx context.Context, r *kgo.Record) (trace.Script, error) {
	s, ok := trace.ParseScript(r.Headers)
	if !ok {
		return s, classify.Terminal(errors.New("a record of somebody else"))
	}
	if s.Act == trace.ActDecode && s.KillsAt(consumer.DeliveryOf(ctx, r).Attempt) {
		p.start(ctx, r, s)
		die()
	}
	return s, nil
}

// play makes a run, from its start to its end in the journal.
func (p player) play(ctx context.Context, r *kgo.Record, s trace.Script) error {
	n := p.start(ctx, r, s)
	failed, handle := false, p.own // the team's handler
	if p.own != nil {
		handle = func(ctx context.Context, r *kgo.Record) error {
			failed = true // unless it returns otherwise
			err := p.own(ctx, r)
			failed = err != nil
			return err
		}
	}
	defer func() {
		if v := recover(); v != nil {
			p.end(n, trace.VerdictPanic, failed)
			panic(v)
		}
	}()
	var result error
	switch mode := p.down.Fails(r.Key); {
	case mode == outage.None || s.Kills():
		result = play(ctx, s, r, handle, p.timeout)
	case mode == outage.All:
		result = classify.As(classify.Retryable(ErrDown), trace.ClassOutage)
	default:
		result = classify.As(classify.Retryable(errPart), trace.ClassOutage)
	}
	p.end(n, verdictOf(ctx, result), failed)
	return result
}

// start tells the journal that a run starts, and returns its number.
func (p player) start(ctx context.Context, r *kgo.Record, s trace.Script) int64 {
	d := consumer.DeliveryOf(ctx, r)
	due := int64(0)
	if !d.NotBefore.IsZero() {
		due = d.NotBefore.UnixMilli()
	}
	n, err := p.journal.Start(trace.Run{
		ID: s.ID, Topic: d.Physical.Topic, Partition: d.Physical.Partition, Offset: d.Physical.Offset,
		Attempt: d.Attempt, Due: due,
	})
	if err != nil {
		trace.Fatal(err)
	}
	return n
}

// end tells the journal how a run ended.
func (p player) end(n int64, v trace.Verdict, own bool) {
	if err := p.journal.End(n, v, own); err != nil {
		trace.Fatal(err)
	}
}

// ErrDown is the failure of all runs in an outage, and errPart that of some in a partial one.
var (
	ErrDown = errors.New("what the handler calls is down")
	errPart = errors.New("what the handler calls is down in part")
)

// verdictOf says how a run ended that returned err.
func verdictOf(ctx context.Context, err error) trace.Verdict {
	if err == nil {
		return trace.VerdictPassed
	}
	if errors.Is(context.Cause(ctx), consumer.ErrDraining) {
		return trace.VerdictDrained
	}
	if errors.Is(err, ErrDown) {
		return trace.VerdictOutage
	}
	if errors.Is(err, errPart) {
		return trace.VerdictPart
	}
	var c classify.Classifier
	switch c.Classify(err).Verdict {
	case classify.VerdictRetry:
		return trace.VerdictFailed
	case classify.VerdictDiscard:
		return trace.VerdictDiscard
	}
	return trace.VerdictTerminal
}
