package consumer

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/clock"
)

type ctxKey string

// Telemetry asks for values three times a record.
func TestAttempt_LookupCostsNoAllocation(t *testing.T) { // not parallel: it counts allocations
	a := bench(t, time.Minute).attemptNow()
	a.in.from.values = valuesOf(a.in.from.values)
	if got := a.Value(ctxKey("run")); got != "run's" {
		t.Errorf("the value of Run's context is %v, want run's", got)
	}
	var absent any = ctxKey("absent")
	if n := testing.AllocsPerRun(100, func() {
		if a.Value(absent) != nil {
			t.Error("there is a value for a key that was never set")
		}
	}); n != 0 {
		t.Errorf("%v allocations for a look-up, want none", n)
	}
}

// An attempt's deadline is never early, and little late.
func TestAttempt_DeadlineIsLittleLate(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l := bench(t, time.Minute)
		time.Sleep(10 * time.Millisecond) // the coarse clock lies behind the truth
		began := time.Now()
		a := l.attemptNow()
		a.in.last.Add(-int64(10 * time.Millisecond))
		at, ok := a.Deadline()
		if left := at.Sub(began); !ok || left < time.Minute || left > time.Minute+clock.Lag {
			t.Errorf("deadline in %v, %v; want a minute, and %v more at most", left, ok, clock.Lag)
		}
		select {
		case <-a.Done():
		case <-time.After(time.Hour):
		}
		if took := time.Since(began); took < time.Minute || took > time.Minute+clock.Lag {
			t.Errorf("done after %v, want a minute, and %v more at most", took, clock.Lag)
		}
		if err, cause := a.Err(), context.Cause(a); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(cause, ErrHandlerTimeout) {
			t.Errorf("Err is %v, cause %v; want DeadlineExceeded and ErrHandlerTimeout", err, cause)
		}
		a.end()
		if cause := context.Cause(a); !errors.Is(cause, ErrHandlerTimeout) {
			t.Errorf("cause %v after the end, want ErrHandlerTimeout still", cause)
		}
	})
}

// A handler that only calls Err, and never Done, learns of its timeout.
func TestAttempt_ErrReportsTheTimeout(t *testing.T) {
	virtual(t, func(t *testing.T) {
		l := bench(t, time.Second)
		a := l.attemptNow()
		tickTo := func(d time.Duration) {
			time.Sleep(d)
			l.c.clock.Reading.Store(int64(time.Since(l.c.clock.Base)))
			synctest.Wait()
		}
		tickTo(time.Second)
		if err := a.Err(); err != nil || a.made() != nil {
			t.Errorf("Err is %v at the timeout by the coarse clock, which may lag behind; standard context made: %v", err, a.made() != nil)
		}
		tickTo(clock.Lag)
		if err := a.Err(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Err is %v a little after the timeout, want DeadlineExceeded", err)
		}
		if cause := context.Cause(a); !errors.Is(cause, ErrHandlerTimeout) {
			t.Errorf("cause %v, want ErrHandlerTimeout", cause)
		}
		a.end()
	})
}

// A process stands, as it is suspended, or throttled, or its host moves. What begins as it wakes,
// before the coarse clock has moved, has its whole time.
func TestAttempt_BegunAsTheProcessWakesHasItsWholeTime(t *testing.T) {
	const timeout, stands = 10 * time.Second, time.Minute
	each(t, map[string]func(*attempt){
		"asks for Done at once": func(a *attempt) { a.Done() },
		"asks for Err only":     func(*attempt) {},
	}, func(t *testing.T, first func(*attempt)) {
		synctest.Test(t, func(t *testing.T) {
			l := bench(t, timeout)
			var stood sync.Once
			done := make(chan struct{})
			k := clock.New(&l.c.wg, done, func() { stood.Do(func() { time.Sleep(stands) }) })
			k.Enter()
			time.Sleep(stands) // the clock stands since half a second after the start
			a := l.attemptNow()
			a.in.from.clock = k
			a.in.last.Store(k.Reading.Load())
			began := time.Now()
			first(a)
			time.Sleep(timeout - 1)
			if err := a.Err(); err != nil {
				t.Errorf("Err is %v after %v, with a timeout of %v", err, time.Since(began), timeout)
			}
			time.Sleep(time.Second)
			if err := a.Err(); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Err is %v after %v, want DeadlineExceeded", err, time.Since(began))
			}
			a.end()
			k.Leave()
			close(done)
		})
	})
}

// Without HandlerTimeout an attempt has no deadline.
func TestAttempt_HasNoDeadlineWithoutATimeout(t *testing.T) {
	virtual(t, func(t *testing.T) {
		a := bench(t, -1).attemptNow()
		if at, ok := a.Deadline(); ok {
			t.Errorf("deadline %v", at)
		}
		done := a.Done()
		time.Sleep(1000 * time.Hour)
		a.in.from.clock.Reading.Store(int64(time.Since(a.in.from.clock.Base)))
		select {
		case <-done:
			t.Error("done without a timeout")
		default:
		}
		if err := a.Err(); err != nil {
			t.Errorf("Err is %v", err)
		}
		a.end()
		<-done
	})
}

// A handler may keep its context: it stays valid, and is cancelled when the handler returns.
func TestAttempt_KeptContextIsValidAndCancelled(t *testing.T) {
	each(t, map[string]func(*attempt){
		"never touched":    func(*attempt) {},
		"asked for Done":   func(a *attempt) { a.Done() },
		"asked for Err":    func(a *attempt) { _ = a.Err() },
		"with a child":     func(a *attempt) { _, cancel := context.WithCancel(a); cancel() },
		"cause looked for": func(a *attempt) { _ = context.Cause(a) },
	}, func(t *testing.T, touch func(*attempt)) {
		a := bench(t, time.Hour).attemptNow()
		if a.Err() != nil || context.Cause(a) != nil {
			t.Errorf("Err %v, cause %v before the end", a.Err(), context.Cause(a))
		}
		touch(a)
		a.end()
		a.end() // a panic's second one changes nothing
		select {
		case <-a.Done():
		default:
			t.Error("not done after the end")
		}
		if !errors.Is(a.Err(), context.Canceled) || !errors.Is(context.Cause(a), context.Canceled) {
			t.Errorf("Err is %v, cause %v; want Canceled", a.Err(), context.Cause(a))
		}
		if at, ok := a.Deadline(); !ok || at.IsZero() {
			t.Error("no deadline after the end")
		}
		child, cancel := context.WithTimeout(a, time.Hour)
		defer cancel()
		if !errors.Is(child.Err(), context.Canceled) {
			t.Errorf("a child made after the end has Err %v, want Canceled", child.Err())
		}
		if got := a.Value(ctxKey("run")); got != "run's" {
			t.Errorf("value %v after the end", got)
		}
		if a.drained() {
			t.Error("an attempt that ended was drained")
		}
	})
}

// The cause of a cancelled attempt reaches derived contexts and context.AfterFunc.
func TestAttempt_CauseReachesChildrenAndAfterFunc(t *testing.T) {
	type row struct {
		end   func(*attempt)
		cause error
		err   error
	}
	each(t, map[string]row{
		"draining": {func(a *attempt) { a.abandon(ErrDraining) }, ErrDraining, context.Canceled},
		"timeout":  {func(*attempt) { time.Sleep(time.Minute + clock.Tick) }, ErrHandlerTimeout, context.DeadlineExceeded},
		"returned": {func(a *attempt) { a.end() }, context.Canceled, context.Canceled},
	}, func(t *testing.T, tt row) {
		synctest.Test(t, func(t *testing.T) {
			a := bench(t, time.Minute).attemptNow()
			child, cancel := context.WithCancel(a)
			defer cancel()
			valued, cancelValued := context.WithTimeout(context.WithValue(child, ctxKey("x"), 1), time.Hour)
			defer cancelValued()
			var mu sync.Mutex
			var called []error
			for _, ctx := range []context.Context{a, child, valued} {
				context.AfterFunc(ctx, func() {
					mu.Lock()
					defer mu.Unlock()
					called = append(called, context.Cause(ctx))
				})
			}
			stop := context.AfterFunc(a, func() { t.Error("a function that was stopped is called") })
			if !stop() {
				t.Error("stop came too late")
			}
			tt.end(a)
			synctest.Wait()
			for i, ctx := range []context.Context{a, child, valued} {
				if !errors.Is(ctx.Err(), tt.err) || !errors.Is(context.Cause(ctx), tt.cause) {
					t.Errorf("context %d: Err %v, cause %v; want %v, %v", i, ctx.Err(), context.Cause(ctx), tt.err, tt.cause)
				}
			}
			if len(called) != 3 {
				t.Errorf("%d functions were called, want 3", len(called))
			}
			for _, cause := range called {
				if !errors.Is(cause, tt.cause) {
					t.Errorf("called with cause %v, want %v", cause, tt.cause)
				}
			}
			if got, want := a.drained(), errors.Is(tt.cause, ErrDraining); got != want {
				t.Errorf("drained() = %v, want %v", got, want)
			}
			a.end()
			if got, want := a.drained(), errors.Is(tt.cause, ErrDraining); got != want {
				t.Errorf("drained() = %v after the end, want %v", got, want)
			}
		})
	})
}

// An attempt that timed out before its lane drained has failed. The drain did not cut it off.
func TestAttempt_TimeoutBeforeADrainCounts(t *testing.T) {
	virtual(t, func(t *testing.T) {
		a := bench(t, time.Second).attemptNow()
		<-a.Done()
		a.abandon(ErrDraining)
		if a.drained() {
			t.Error("a handler that ran past its timeout is taken for one that was drained: its failure would be ignored")
		}
		a.end()
	})
}

// A drain does not cut off an attempt whose handler has returned.
func TestAttempt_DrainAtItsEndIsNone(t *testing.T) {
	t.Parallel()
	for range 200 {
		a := bench(t, time.Minute).attemptNow()
		var wg sync.WaitGroup
		wg.Go(a.end)
		wg.Go(func() { a.abandon(ErrDraining) })
		wg.Go(func() { <-a.Done() })
		wg.Wait()
		if !errors.Is(a.Err(), context.Canceled) {
			t.Fatalf("Err is %v, want Canceled", a.Err())
		}
	}
	a := bench(t, time.Minute).attemptNow()
	a.end()
	a.abandon(ErrDraining)
	if a.drained() {
		t.Error("an attempt that had returned is taken for one that was drained")
	}
	if b := bench(t, time.Minute).attemptNow(); b.Err() != nil || b.drained() {
		t.Error("abandoning an attempt that had ended cancelled another one")
	}
}

// Values come from the record's context, which kgo's hooks fill, or else from the context of Run.
func TestAttempt_ValuesOfTheRecordThenOfRun(t *testing.T) {
	ended, cancel := context.WithCancel(context.WithValue(context.WithValue(context.Background(), ctxKey("hook"), "hook's"), ctxKey("both"), "hook's"))
	cancel()
	each(t, map[string]func(*attempt){
		"as it is":                   func(*attempt) {},
		"with its Done channel made": func(a *attempt) { a.Done() },
	}, func(t *testing.T, touch func(*attempt)) {
		a := bench(t, time.Minute).attemptNow()
		a.in.from.values = context.WithValue(a.in.from.values, ctxKey("both"), "run's")
		a.rec().Context = ended
		touch(a)
		if cause := context.Cause(a); cause != nil {
			t.Errorf("cause %v: the end of the hooks' context reached the handler", cause)
		}
		child := context.WithValue(a, ctxKey("child"), "child's")
		for key, want := range map[ctxKey]any{"hook": "hook's", "both": "hook's", "run": "run's", "child": "child's", "none": nil} {
			if got := child.Value(key); got != want {
				t.Errorf("value of %q is %v, want %v", key, got, want)
			}
		}
		// The hooks' context ended long ago; only its values are taken.
		grandchild, cancel := context.WithCancel(child)
		defer cancel()
		if grandchild.Err() != nil || a.Err() != nil || context.Cause(grandchild) != nil {
			t.Errorf("Err %v, %v, cause %v: the end of the hooks' context reached the handler", grandchild.Err(), a.Err(), context.Cause(grandchild))
		}
		a.rec().Context = nil
		if got := a.Value(ctxKey("both")); got != "run's" {
			t.Errorf("without a hook's context the value is %v, want Run's", got)
		}
		a.end()
	})
}

// A handler that does not touch its context costs no allocation for it.
func TestAttempt_UntouchedContextCostsNothing(t *testing.T) {
	l := bench(t, time.Minute)
	all := new(attempts)
	all.of(l.source.origin, slices.Repeat([]*kgo.Record{{Topic: "orders"}}, 2000))
	n := 0
	allocs := testing.AllocsPerRun(1000, func() {
		a := all.begin(n, l.c.clock.Reading.Load())
		n++
		if err := func(ctx context.Context) error { return ctx.Err() }(a); err != nil {
			t.Fatal(err)
		}
		a.end()
	})
	if allocs != 0 {
		t.Errorf("%v allocations an attempt, want none", allocs)
	}
}

// A healthy record costs an element of a slab of attempts.
func TestAttempt_IsSmall(t *testing.T) {
	t.Parallel()
	if got := unsafe.Sizeof(attempt{}); got > 16 {
		t.Errorf("an attempt takes %d bytes, want 16 at most: every healthy record pays for it", got)
	}
}

// The longest Duration as a timeout gave a deadline in the past: every run timed out.
func TestAttempt_LongestTimeoutIsInTheFuture(t *testing.T) {
	virtual(t, func(t *testing.T) {
		a := bench(t, math.MaxInt64).attemptNow()
		at, ok := a.Deadline()
		if in := time.Until(at); !ok || in < 290*365*24*time.Hour || a.Err() != nil {
			t.Errorf("the deadline is in %v, with error %v", in, a.Err())
		}
		select {
		case <-a.Done():
			t.Error("the run is over")
		case <-time.After(time.Hour):
		}
	})
}
