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
		time.Sleep(time.Hour) // an idle consumer wakes nobody: nothing ticks
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
