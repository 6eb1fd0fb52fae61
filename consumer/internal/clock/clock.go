package clock

import (
	"sync"
	"sync/atomic"
	"time"
)

// Tick is how often the coarse clock moves. A clock read costs more than a tenth of what a bare
// loop spends on a record, so attempts take their start from a clock that a ticker moves.
const Tick = 20 * time.Millisecond

// checkEvery and lingerFor count ticks: how often running attempts are looked over, and how long
// the ticker outlives the last worker, so that a stream of short batches does not start and stop it
// each time.
const (
	checkEvery = 25
	lingerFor  = 50
)

// Clock is the coarse clock. It ticks only while workers run: an idle consumer wakes nobody.
type Clock struct {
	Base time.Time
	// nanoseconds since base, behind the truth by at most a tick and the scheduler's delay
	Reading atomic.Int64
	check   func() // looks over the running attempts

	mu      sync.Mutex
	workers int
	ticking atomic.Bool // set and cleared with mu
	wg      *sync.WaitGroup
	done    <-chan struct{}
}

// New makes a clock that ends with done. It counts its goroutine in wg, and calls check now and
// then while workers run.
func New(wg *sync.WaitGroup, done <-chan struct{}, check func()) *Clock {
	return &Clock{Base: time.Now(), wg: wg, done: done, check: check}
}

// Enter is called by a worker before its first record, leave after its last.
func (k *Clock) Enter() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.workers++
	k.Reading.Store(int64(time.Since(k.Base)))
	if !k.ticking.Load() {
		k.ticking.Store(true)
		k.wg.Go(k.tick)
	}
}

// Leave is called by a worker after its last record.
func (k *Clock) Leave() {
	k.mu.Lock()
	k.workers--
	k.mu.Unlock()
}

func (k *Clock) tick() {
	t := time.NewTicker(Tick)
	defer t.Stop()
	idle := 0
	for n := 1; ; n++ {
		select {
		case <-t.C:
		case <-k.done:
			return
		}
		k.Reading.Store(int64(time.Since(k.Base)))
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

// At is the wall and monotonic time of a coarse reading.
func (k *Clock) At(reading int64) time.Time { return k.Base.Add(time.Duration(reading)) }

// About is the time, behind the truth by no more than the coarse clock is. It is for what comes by
// the thousand, workers or not.
func (k *Clock) About() time.Time {
	if k.ticking.Load() {
		return k.At(k.Reading.Load())
	}
	return time.Now()
}
