package consumer

import (
	"sync"
	"sync/atomic"
	"time"
)

// tick is how often the coarse clock moves. A clock read costs more than a tenth of what a bare loop spends on a
// record, so attempts take their start from a clock that a ticker moves.
const tick = 20 * time.Millisecond

// checkEvery and lingerFor count ticks: how often running attempts are looked over, and how long the ticker outlives
// the last worker, so that a stream of short batches does not start and stop it each time.
const (
	checkEvery = 25
	lingerFor  = 50
)

// clock is the coarse clock. It ticks only while workers run: an idle consumer wakes nobody.
type clock struct {
	base  time.Time
	now   atomic.Int64 // nanoseconds since base, behind the truth by at most a tick and the scheduler's delay
	check func()       // looks over the running attempts

	mu      sync.Mutex
	workers int
	ticking atomic.Bool // set and cleared with mu
	wg      *sync.WaitGroup
	done    <-chan struct{}
}

func newClock(wg *sync.WaitGroup, done <-chan struct{}, check func()) *clock {
	return &clock{base: time.Now(), wg: wg, done: done, check: check}
}

// enter is called by a worker before its first record, leave after its last.
func (k *clock) enter() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.workers++
	k.now.Store(int64(time.Since(k.base)))
	if !k.ticking.Load() {
		k.ticking.Store(true)
		k.wg.Go(k.tick)
	}
}

func (k *clock) leave() {
	k.mu.Lock()
	k.workers--
	k.mu.Unlock()
}

func (k *clock) tick() {
	t := time.NewTicker(tick)
	defer t.Stop()
	idle := 0
	for n := 1; ; n++ {
		select {
		case <-t.C:
		case <-k.done:
			return
		}
		k.now.Store(int64(time.Since(k.base)))
		if n%checkEvery == 0 {
			k.check()
		}
		k.mu.Lock()
		if k.workers > 0 {
			idle = 0
		} else if idle++; idle >= lingerFor {
			k.ticking.Store(false)
			k.mu.Unlock()
			return
		}
		k.mu.Unlock()
	}
}

// at is the wall and monotonic time of a coarse reading.
func (k *clock) at(reading int64) time.Time { return k.base.Add(time.Duration(reading)) }

// about is the time, behind the truth by no more than the coarse clock is. It is for what comes by the thousand, workers or not.
func (k *clock) about() time.Time {
	if k.ticking.Load() {
		return k.at(k.now.Load())
	}
	return time.Now()
}
