package member

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/integration/chaos/internal/outage"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// scripted is the handler of all members: it plays the record's script, and writes to the journal.
// While what it calls is down, it fails instead.
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

// start logs that a run starts, and returns its number.
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

// end logs how a run ended.
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
	verdict := new(classify.Classifier).Classify(err).Verdict
	switch {
	case err == nil:
		return trace.VerdictPassed
	case errors.Is(context.Cause(ctx), consumer.ErrDraining):
		return trace.VerdictDrained
	case errors.Is(err, ErrDown):
		return trace.VerdictOutage
	case errors.Is(err, errPart):
		return trace.VerdictPart
	case verdict == classify.VerdictRetry:
		return trace.VerdictFailed
	case verdict == classify.VerdictDiscard:
		return trace.VerdictDiscard
	}
	return trace.VerdictTerminal
}

// errScripted is what scripts fail with.
var errScripted = errors.New("as the script says")

// play does what the script says for an attempt. own is the team's handler.
func play(ctx context.Context, s trace.Script, r *kgo.Record, own consumer.Handler, timeout time.Duration) error {
	d := consumer.DeliveryOf(ctx, r)
	fail := d.Attempt <= s.Times
	if s.Work > 0 {
		select {
		case <-time.After(s.Work):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	switch {
	case (s.Act == trace.ActRetry || s.Kills()) && fail:
		return classify.As(classify.Retryable(errScripted), s.Class)
	case s.Act == trace.ActAfter && fail:
		return classify.As(classify.RetryAfter(errScripted, 700*time.Millisecond), s.Class)
	case s.Act == trace.ActHang && fail:
		<-ctx.Done()
		return context.Cause(ctx)
	case s.Act == trace.ActTerminal, s.Act == trace.ActRedriven && d.RedriveID == "":
		return classify.As(classify.Terminal(errScripted), s.Class)
	case s.Act == trace.ActDiscard:
		return classify.As(classify.Discard(errScripted), s.Class)
	case s.Act == trace.ActKill && !fail:
		die()
	case s.Act == trace.ActPanic:
		panic("as the script says")
	case s.Act == trace.ActIgnore:
		<-time.After(timeout * 3 / 2) // its context ends before that, and it does not care
	case s.Act == trace.ActStuck:
		<-time.After(trace.StuckFor)
	}
	if own != nil {
		return own(ctx, r)
	}
	return nil
}

// die kills the process.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal is on its way
}
