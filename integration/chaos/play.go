package chaos

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
)

// errScripted is what scripts fail with.
var errScripted = errors.New("as the script says")

// play does what the script says for an attempt. own is the team's handler.
func play(ctx context.Context, s script, r *kgo.Record, own consumer.Handler, timeout time.Duration) error {
	d := consumer.DeliveryOf(ctx, r)
	fail := d.Attempt <= s.times
	if s.work > 0 {
		select {
		case <-time.After(s.work):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	switch {
	case (s.act == actRetry || s.kills()) && fail:
		return classify.As(classify.Retryable(errScripted), s.class)
	case s.act == actAfter && fail:
		return classify.As(classify.RetryAfter(errScripted, 700*time.Millisecond), s.class)
	case s.act == actHang && fail:
		<-ctx.Done()
		return context.Cause(ctx)
	case s.act == actTerminal, s.act == actRedriven && d.RedriveID == "":
		return classify.As(classify.Terminal(errScripted), s.class)
	case s.act == actDiscard:
		return classify.As(classify.Discard(errScripted), s.class)
	case s.act == actKill && !fail:
		die()
	case s.act == actPanic:
		panic("as the script says")
	case s.act == actIgnore:
		<-time.After(timeout * 3 / 2) // its context ends before that, and it does not care
	case s.act == actStuck:
		<-time.After(stuckFor)
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
