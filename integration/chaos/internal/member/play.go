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
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

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
