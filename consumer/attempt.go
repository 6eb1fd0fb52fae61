package consumer

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/clock"
	"github.com/sidingkafka/siding/headers"
)

// attempt is one run of the handler on one record, and the context that this run sees.
//
// The standard library's context.WithTimeout costs more than the rest of the loop on a no-op
// handler, so an attempt is cut from a slab and becomes a standard context only when somebody asks
// for its Done channel. Most of what a context must do then (children, causes, AfterFunc) is the
// standard library's work again. A slab is never reused: an attempt that the handler keeps stays
// valid, and is cancelled as soon as the handler returned.
//
// It is as large as a cache line: a slab is what a healthy record costs in memory.
type attempt struct {
	rec   *kgo.Record   // as the handler sees it
	meta  *headers.Meta // what the record's headers say; nil for one that never failed
	from  *origin
	start int64 // coarse reading
	off   int64 // offset in from
	std   atomic.Pointer[stdContext]

	redrive  *headers.Redrive // of a source record that was brought back
	reported atomic.Bool      // as one that ignores its timeout
}

type stdContext struct {
	context.Context
	cancel context.CancelCauseFunc
	stop   context.CancelFunc
}

// over is the context of every attempt that ended without anybody having asked for its Done
// channel.
var over = func() *stdContext {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return &stdContext{Context: ctx, cancel: func(error) {}, stop: cancel}
}()

// timeoutAt is the coarse reading at which the attempt is out of time. The start may lie a tick
// behind the truth, so a tick is added: never early.
func (a *attempt) timeoutAt() (int64, bool) {
	d := a.from.policy.HandlerTimeout
	return a.start + int64(clock.Tick) + int64(d), d > 0
}

// Deadline implements context.Context.
func (a *attempt) Deadline() (time.Time, bool) {
	at, ok := a.timeoutAt()
	if !ok {
		return time.Time{}, false
	}
	return a.from.clock.At(at), true
}

// Done implements context.Context.
func (a *attempt) Done() <-chan struct{} { return a.standard().Done() }

// Err implements context.Context.
func (a *attempt) Err() error {
	if s := a.std.Load(); s != nil {
		return s.Err()
	}
	if at, ok := a.timeoutAt(); ok && a.from.clock.Reading.Load() >= at {
		return a.standard().Err()
	}
	return nil
}

type attemptKey struct{}

// valuesOf is ctx without its end. Asked for a value, what WithoutCancel returns allocates; below a
// value it is seen through.
func valuesOf(ctx context.Context) context.Context {
	return context.WithValue(context.WithoutCancel(ctx), attemptKey{}, nil)
}

// Value implements context.Context: the attempt itself, then what the client's hooks put into the
// record's context (a trace span, say), then the values of the context that Run was called with.
func (a *attempt) Value(key any) any {
	if key == (attemptKey{}) {
		return a
	}
	// The standard library finds its own cancellation state by a key that only it has.
	if s := a.std.Load(); s != nil {
		if v := s.Value(key); v != nil {
			return v
		}
	}
	if a.rec.Context != nil {
		if v := context.WithoutCancel(a.rec.Context).Value(key); v != nil {
			return v
		}
	}
	return a.from.values.Value(key)
}

// standard returns the attempt as a context of the standard library, made at the first call.
func (a *attempt) standard() *stdContext {
	if s := a.std.Load(); s != nil {
		return s
	}
	parent, stop := context.Background(), context.CancelFunc(func() {})
	if at, ok := a.Deadline(); ok {
		parent, stop = context.WithDeadlineCause(parent, at, ErrHandlerTimeout)
	}
	ctx, cancel := context.WithCancelCause(parent)
	s := &stdContext{Context: ctx, cancel: cancel, stop: stop}
	if !a.std.CompareAndSwap(nil, s) {
		cancel(nil)
		stop()
		return a.std.Load()
	}
	return s
}

// abandon cancels the attempt with a cause.
func (a *attempt) abandon(cause error) { a.standard().cancel(cause) }

// end is called when the handler returned.
func (a *attempt) end() {
	if a.std.CompareAndSwap(nil, over) {
		return
	}
	s := a.std.Load()
	s.cancel(nil)
	s.stop()
}

// drained reports whether the attempt was cancelled because its lane is given up.
func (a *attempt) drained() bool {
	s := a.std.Load()
	return s != nil && s != over && errors.Is(context.Cause(s), ErrDraining)
}

// attemptOf finds the attempt in a context that a handler was given or derived from it.
func attemptOf(ctx context.Context) *attempt {
	a, _ := ctx.Value(attemptKey{}).(*attempt)
	return a
}

// physical is where the delivery stands.
func (a *attempt) physical() headers.Position {
	return headers.Position{Topic: a.from.topic, Partition: a.from.partition, Offset: a.off}
}
