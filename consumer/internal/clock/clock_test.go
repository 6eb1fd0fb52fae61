package clock

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestClock_IsNeverAheadAndLittleBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		var checks atomic.Int32
		done := make(chan struct{})
		k := New(&wg, done, func() { checks.Add(1) })
		time.Sleep(time.Hour) // an idle consumer wakes no goroutine: nothing ticks
		if got := k.Reading.Load(); got != 0 {
			t.Errorf("the clock moved to %v without a worker", time.Duration(got))
		}
		k.Enter()
		k.Enter()
		for range 500 {
			behind := time.Since(k.At(k.Reading.Load()))
			if behind < 0 || behind > Tick {
				t.Fatalf("the clock is %v behind, want at most %v, and never ahead", behind, Tick)
			}
			time.Sleep(7 * time.Millisecond)
		}
		if got, want := int(checks.Load()), int(500*7*time.Millisecond/(checkEvery*Tick)); got < want-1 || got > want+1 {
			t.Errorf("%d looks at the running attempts, want %d", got, want)
		}
		k.Leave()
		time.Sleep(time.Hour)
		before := k.Reading.Load()
		time.Sleep(time.Second)
		if k.Reading.Load() == before {
			t.Error("the clock stands while a worker is left")
		}
		k.Leave()
		time.Sleep(2 * lingerFor * Tick)
		wg.Wait() // the ticker ended by itself
		stood := k.Reading.Load()
		time.Sleep(time.Hour)
		if k.Reading.Load() != stood {
			t.Error("the clock moves without workers")
		}
		k.Enter()
		if behind := time.Since(k.At(k.Reading.Load())); behind != 0 {
			t.Errorf("the clock is %v behind when the first worker comes back, want not at all", behind)
		}
		close(done)
		wg.Wait()
		k.Leave()
	})
}

// What read the clock while it stood, as in a process that was suspended, may have happened at any
// time until it moved.
func TestClock_LatestKnowsThatItStood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		var stands atomic.Int64
		done := make(chan struct{})
		k := New(&wg, done, func() { time.Sleep(time.Duration(stands.Load())) })
		ago := func(reading int64) time.Duration { return time.Since(k.At(k.Latest(reading))) }
		k.Enter()
		first := k.Reading.Load()
		time.Sleep(Tick - time.Nanosecond)
		if got := ago(first); got != 0 {
			t.Errorf("the clock may have had its reading until %v ago; it still has it", got)
		}
		time.Sleep(2 * time.Nanosecond)
		if got, want := ago(first), Tick+time.Nanosecond-Lag; got != want {
			t.Errorf("until %v ago after the clock moved, want %v", got, want)
		}
		// a minute, and then short ones, of which the clock cannot remember all
		stands.Store(int64(time.Minute))
		time.Sleep(checkEvery*Tick + time.Second)
		long := k.Reading.Load()
		stands.Store(int64(3 * Tick))
		time.Sleep(time.Minute)
		moved := time.Now().Add(-ago(long))
		if stood := moved.Sub(k.At(long)); stood < time.Minute || stood > time.Minute+Tick {
			t.Errorf("the clock stood for %v, want a minute", stood)
		}
		time.Sleep(2 * mostJumps * checkEvery * Tick)
		if got := time.Now().Add(-ago(long)); !got.Equal(moved) {
			t.Errorf("the clock may have had the reading of its long stand until %v, want %v still", got, moved)
		}
		// long ones, long ago, do not make it forget a short one
		stands.Store(int64(time.Minute))
		time.Sleep(2 * mostJumps * time.Minute)
		stands.Store(0)
		time.Sleep(2 * time.Hour)
		stands.Store(int64(3 * Tick))
		for time.Since(k.At(k.Reading.Load())) <= Lag {
			time.Sleep(time.Millisecond)
		}
		short := k.Reading.Load()
		time.Sleep(time.Second)
		if stood := time.Now().Add(-ago(short)).Sub(k.At(short)); stood < 3*Tick || stood > 4*Tick {
			t.Errorf("the clock stood for %v, want %v", stood, 3*Tick)
		}
		if n := len(*k.jumps.Load()); n != mostJumps {
			t.Errorf("%d jumps are remembered, want %d", n, mostJumps)
		}
		k.Leave()
		close(done)
		wg.Wait()
	})
}
