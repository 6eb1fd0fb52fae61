package consumer

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/offsets"
	"github.com/sidingkafka/siding/headers"
)

// attempt is one run of the handler on one record, and the context of this run.
//
// With a no-op handler, the standard library's context.WithTimeout costs more than the rest of the
// loop. So an attempt is cut from a slab, and becomes a standard context only when its Done channel
// is asked for. The standard library then does most of the work of a context (children, causes,
// AfterFunc). A slab is never reused: an attempt that the handler keeps stays valid. It is
// cancelled when the handler returns, or an instant later, when the unit goes on.
//
// Its 16 bytes are what a healthy record costs in memory.
type attempt struct {
	in  *attempts
	off int64 // offset in the feed
}

// rareParts are the parts of an attempt that a healthy one lacks.
type rareParts struct {
	redriven *headers.Meta // of a redriven source record
	reported atomic.Bool   // its ignored timeout was logged
	std      atomic.Pointer[stdContext]
}

// rareSlot has the rare parts of an attempt, or nil.
type rareSlot struct{ atomic.Pointer[rareParts] }

// made returns the standard context, nil if there is none.
func (r *rareSlot) made() *stdContext {
	if r != nil {
		if parts := r.Load(); parts != nil {
			return parts.std.Load()
		}
	}
	return nil
}

// cancel cancels the standard context of an attempt that has ended, if there is one.
func (r *rareSlot) cancel() {
	if s := r.made(); s != nil {
		s.cancel(nil)
		s.stop()
	}
}

// slot returns where the attempt's rare parts are; nil before any attempt of its unit has some.
func (a *attempt) slot() *rareSlot {
	if s := a.in; len(s.each) == 1 || s.rare.Load() != nil {
		return s.slot(s.index(a))
	}
	return nil
}

// rareParts returns the parts of an attempt that has begun, which the first call makes.
func (a *attempt) rareParts() *rareParts {
	slot := a.slot()
	if slot == nil {
		all := make([]rareSlot, len(a.in.each))
		a.in.rare.CompareAndSwap(nil, &all)
		slot = a.slot()
	}
	if r := slot.Load(); r != nil {
		return r
	}
	slot.CompareAndSwap(nil, new(rareParts))
	return slot.Load()
}

func (a *attempt) rec() *kgo.Record { return a.in.recs[a.in.index(a)] }

// redriven returns what the headers of a redriven source record say, nil if it is none.
func (a *attempt) redriven() *headers.Meta {
	if slot := a.slot(); slot != nil {
		if r := slot.Load(); r != nil {
			return r.redriven
		}
	}
	return nil
}

// ended reports whether the handler of an attempt that has begun has returned.
func (a *attempt) ended() bool {
	at := a.in.at.Load()
	return a != &a.in.each[at/2] || at%2 == 1
}

// made returns the standard context, nil if there is none.
func (a *attempt) made() *stdContext { return a.slot().made() }

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

// timeoutAt is the coarse reading at which the attempt times out if it began at one. It counts from
// the last moment at which the attempt may have begun. So it never times out early, not even if the
// process stood just before it, and the clock with it.
func (a *attempt) timeoutAt(began int64) (int64, bool) {
	d := a.in.from.policy.HandlerTimeout
	return int64(plus(time.Duration(a.in.from.clock.Latest(began))+a.in.from.waited(a.off), d, 1)), d > 0
}

// deadline is for those who watch the attempt. While the clock stands, it moves. If the attempt has
// ended meanwhile, it is later.
func (a *attempt) deadline() (time.Time, bool) { return a.deadlineFrom(a.in.last.Load()) }

func (a *attempt) deadlineFrom(began int64) (time.Time, bool) {
	at, ok := a.timeoutAt(began)
	if !ok {
		return time.Time{}, false
	}
	return a.in.from.clock.At(at), true
}

// Deadline implements context.Context. All calls return the same, unless the attempt ended before
// the first one: then the deadline counts from when its unit began, and may move by a tick.
func (a *attempt) Deadline() (time.Time, bool) {
	if s := a.standard(); s != over {
		return s.Deadline()
	}
	return a.deadlineFrom(a.in.first)
}

// Done implements context.Context.
func (a *attempt) Done() <-chan struct{} { return a.standard().Done() }

// Err implements context.Context.
func (a *attempt) Err() error {
	if s := a.made(); s != nil {
		return s.Err()
	}
	if a.ended() {
		return context.Canceled
	}
	now, d := a.in.from.clock.Reading.Load(), a.in.from.policy.HandlerTimeout
	began := a.in.last.Load()
	if d <= 0 || now-began < int64(d) {
		return nil
	}
	if at, ok := a.timeoutAt(began); ok && now >= at {
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
	if s := a.made(); s != nil {
		if v := s.Value(key); v != nil {
			return v
		}
	}
	if outer := a.rec().Context; outer != nil {
		if v := context.WithoutCancel(outer).Value(key); v != nil {
			return v
		}
	}
	return a.in.from.values.Value(key)
}

// standard returns the attempt as a context of the standard library, which the first call makes.
// The attempt may end meanwhile: end looks for the context after it has ended the attempt, and
// standard looks for the end after it has made the context, so one of both cancels it.
func (a *attempt) standard() *stdContext {
	r := a.rareParts()
	if s := r.std.Load(); s != nil {
		return s
	}
	at, ok := a.deadline() // its own, unless it has ended by now
	if a.ended() {
		r.std.CompareAndSwap(nil, over)
		return r.std.Load()
	}
	parent, stop := context.Background(), context.CancelFunc(func() {})
	if ok {
		parent, stop = context.WithDeadlineCause(parent, at, ErrHandlerTimeout)
	}
	ctx, cancel := context.WithCancelCause(parent)
	s := &stdContext{Context: ctx, cancel: cancel, stop: stop}
	if !r.std.CompareAndSwap(nil, s) {
		cancel(nil)
		stop()
		return r.std.Load()
	}
	if a.ended() {
		a.slot().cancel()
	}
	return s
}

// abandon cancels the attempt with a cause.
func (a *attempt) abandon(cause error) { a.standard().cancel(cause) }

// end ends the attempt, if it has not ended.
func (a *attempt) end() {
	if !a.ended() {
		a.in.at.Add(1)
	}
	a.slot().cancel()
}

// drained reports whether the attempt was cancelled because its lane was revoked or lost.
func (a *attempt) drained() bool {
	s := a.made()
	return s != nil && s != over && errors.Is(context.Cause(s), ErrDraining)
}

// attemptOf returns the attempt that ctx is, or is derived from; nil if there is none.
func attemptOf(ctx context.Context) *attempt {
	a, _ := ctx.Value(attemptKey{}).(*attempt)
	return a
}

// physical is the position at which the delivered record was read.
func (a *attempt) physical() headers.Position {
	return headers.Position{Topic: a.in.from.topic, Partition: a.in.from.partition, Offset: a.off}
}

// example returns where the attempt's record was read, for the log.
func (a *attempt) example(about ...any) recordExample {
	return recordExample{partition: a.in.from.partition, feed: a.in.from.topic, offset: a.off, about: about}
}

// attempts are the runs of a unit's records, one after another, in one piece of memory.
type attempts struct {
	from *origin
	recs []*kgo.Record // as the handler sees them
	meta *headers.Meta // from the headers of a single record; nil for records that never failed
	each []attempt
	// at is twice the index of the attempt that began last, and one more when it has ended. Each
	// attempt before it has ended. One store thus ends an attempt and begins the next.
	at atomic.Int64
	// The coarse readings at which the first attempt began, and the last one. Few attempts of a
	// unit have a reading of their own. The last one's changes before at.
	first int64
	last  atomic.Int64
	// One more than the first offset of those that the unit has finished, and the tracker lacks; 0
	// if there is none. They reach to the attempt that began last. It changes before at.
	unreported atomic.Int64
	rare       atomic.Pointer[[]rareSlot] // of several attempts, once one of them has any

	one struct {
		attempt [1]attempt
		rec     [1]*kgo.Record
		rare    rareSlot
	}
}

// of sets the records.
func (s *attempts) of(from *origin, recs []*kgo.Record) {
	s.from, s.recs, s.each = from, recs, make([]attempt, len(recs))
}

// ofOne sets a single record.
func (s *attempts) ofOne(from *origin, rec *kgo.Record, meta *headers.Meta) *attempt {
	s.one.rec[0] = rec
	s.from, s.recs, s.each, s.meta = from, s.one.rec[:], s.one.attempt[:], meta
	return &s.one.attempt[0]
}

// begin begins the attempt with an index, and ends the one before it.
func (s *attempts) begin(i int, reading int64) *attempt {
	a := &s.each[i]
	a.in = s
	if i == 0 {
		s.first = reading
	}
	if s.last.Load() != reading {
		s.last.Store(reading) // a store costs more than all the rest
	}
	s.at.Store(2 * int64(i))
	if i > 0 && s.rare.Load() != nil {
		s.slot(i - 1).cancel()
	}
	return a
}

// index returns the index of an attempt that has begun. Offsets ascend.
func (s *attempts) index(a *attempt) int {
	i := int(s.at.Load() / 2)
	if a != &s.each[i] {
		i, _ = slices.BinarySearchFunc(s.each[:i], a.off, func(b attempt, off int64) int { return cmp.Compare(b.off, off) })
	}
	return i
}

// slot returns where the rare parts of the attempt with an index are; nil before any attempt has
// some.
func (s *attempts) slot(i int) *rareSlot {
	if len(s.each) == 1 {
		return &s.one.rare
	}
	if all := s.rare.Load(); all != nil {
		return &(*all)[i]
	}
	return nil
}

// running are the attempts of which one runs.
type running struct{ atomic.Pointer[attempts] }

// attempt returns the attempt that began last, nil if none runs.
func (r *running) attempt() *attempt {
	if s := r.Load(); s != nil {
		return &s.each[s.at.Load()/2]
	}
	return nil
}

// finished returns the offsets that the unit has finished, and the tracker lacks. The caller holds
// the lane's lock, under which the tracker gets them. So what began meanwhile makes them fewer, but
// never includes a record that is not finished.
func (r *running) finished() (offsets.Span, bool) {
	s := r.Load()
	if s == nil {
		return offsets.Span{}, false
	}
	last := s.each[s.at.Load()/2].off - 1
	first := s.unreported.Load() - 1
	return offsets.Span{First: first, Last: last}, first >= 0 && first <= last
}
