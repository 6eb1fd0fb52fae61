package consumer

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

// attempt is one run of the handler on one record, and the context of this run.
//
// With a no-op handler, the standard library's context.WithTimeout costs more than the rest of the
// loop. So an attempt is cut from a slab, and becomes a standard context only when its Done channel
// is asked for. The standard library then does most of the work of a context (children, causes,
// AfterFunc). A slab is never reused: an attempt that the handler keeps stays valid, and is
// cancelled when the handler returns.
//
// It has the size of a cache line: a slab is what a healthy record costs in memory.
type attempt struct {
	rec   *kgo.Record   // as the handler sees it
	meta  *headers.Meta // from the record's headers; nil for a record that never failed
	from  *origin
	start int64 // coarse reading
	off   int64 // offset in from
	std   atomic.Pointer[stdContext]

	redriven *headers.Meta // of a redriven source record
	reported atomic.Bool   // its ignored timeout was logged
	// how many offsets before off lie those that the unit has finished, and the tracker lacks
	unreported uint32
}

type stdContext struct {
	context.Context
	cancel context.CancelCauseFunc
	stop   context.CancelFunc
}

// over is the context of every attempt that ended before its Done channel was asked for.
var over = func() *stdContext {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return &stdContext{Context: ctx, cancel: func(error) {}, stop: cancel}
}()

// timeoutAt is the coarse reading at which the attempt times out. It counts from the last moment at
// which the attempt may have begun: an attempt never times out early, not even if the process stood
// just before it, and the clock with it.
func (a *attempt) timeoutAt() (int64, bool) {
	d := a.from.policy.HandlerTimeout
	return int64(plus(time.Duration(a.from.clock.Latest(a.start))+a.from.waited(a.off), d, 1)), d > 0
}

// deadline is for those who watch the attempt. While the clock stands, it moves.
func (a *attempt) deadline() (time.Time, bool) {
	at, ok := a.timeoutAt()
	if !ok {
		return time.Time{}, false
	}
	return a.from.clock.At(at), true
}

// Deadline implements context.Context. All calls return the same.
func (a *attempt) Deadline() (time.Time, bool) {
	if s := a.standard(); s != over {
		return s.Deadline()
	}
	return a.deadline()
}

// Done implements context.Context.
func (a *attempt) Done() <-chan struct{} { return a.standard().Done() }

// Err implements context.Context.
func (a *attempt) Err() error {
	if s := a.std.Load(); s != nil {
		return s.Err()
	}
	now, d := a.from.clock.Reading.Load(), a.from.policy.HandlerTimeout
	if d <= 0 || now-a.start < int64(d) {
		return nil
	}
	if at, ok := a.timeoutAt(); ok && now >= at {
		return a.standard().Err()
	}
	return nil
}

type attemptKey struct{}

// valuesOf returns ctx without its end. A value lookup that begins in the result of WithoutCancel
// allocates; a lookup that begins in a value context above it does not.
func valuesOf(ctx context.Context) context.Context {
	return context.WithValue(context.WithoutCancel(ctx), attemptKey{}, nil)
}

// Value implements context.Context. It looks in the attempt itself, then in the record's context,
// then in the context of Run. The client's hooks put values into the record's context, for example
// a trace span.
func (a *attempt) Value(key any) any {
	if key == (attemptKey{}) {
		return a
	}
	// The standard library finds its own cancellation state by a private key.
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

// standard returns the attempt as a context of the standard library, which the first call makes.
func (a *attempt) standard() *stdContext {
	if s := a.std.Load(); s != nil {
		return s
	}
	parent, stop := context.Background(), context.CancelFunc(func() {})
	if at, ok := a.deadline(); ok {
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

// end ends the attempt when the handler has returned.
func (a *attempt) end() {
	if a.std.CompareAndSwap(nil, over) {
		return
	}
	s := a.std.Load()
	s.cancel(nil)
	s.stop()
}

// drained reports whether the attempt was cancelled because its lane was revoked or lost.
func (a *attempt) drained() bool {
	s := a.std.Load()
	return s != nil && s != over && errors.Is(context.Cause(s), ErrDraining)
}

// attemptOf returns the attempt that ctx is, or is derived from; nil if there is none.
func attemptOf(ctx context.Context) *attempt {
	a, _ := ctx.Value(attemptKey{}).(*attempt)
	return a
}

// physical is the position at which the delivered record was read.
func (a *attempt) physical() headers.Position {
	return headers.Position{Topic: a.from.topic, Partition: a.from.partition, Offset: a.off}
}

// example returns where the attempt's record was read, for the log.
func (a *attempt) example(about ...any) recordExample {
	return recordExample{partition: a.from.partition, feed: a.from.topic, offset: a.off, about: about}
}
