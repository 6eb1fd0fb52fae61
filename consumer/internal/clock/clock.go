package clock

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Tick is how often the coarse clock moves. A bare loop spends more than a tenth of its time per
// record on reading the system clock. So attempts take their start from a clock that a ticker
// moves.
const Tick = 20 * time.Millisecond

// Lag is by how much a reading may lie behind before the clock registers a jump.
const Lag = Tick * 3 / 2

// mostJumps bounds the jumps that the clock remembers. Of more, it forgets the jump that is the
// smallest against the time since: the timeout of what began then, and still runs, is even longer.
const mostJumps = 64

// Both count ticks. checkEvery is the interval between two checks of the running attempts. The
// ticker outlives the last worker by lingerFor, so that short batches do not start and stop it each
// time.
const (
	checkEvery = 25
	lingerFor  = 50
)

// Clock is the coarse clock. It ticks only while workers run: an idle consumer uses no CPU. Its
// methods are safe for concurrent use.
type Clock struct {
	Base time.Time
	// Reading is in nanoseconds since Base. It lags by at most a tick and the scheduler's delay.
	Reading atomic.Int64
	jumps   atomic.Pointer[[]jump] // the last ones; a slice is never changed
	check   func()                 // of the running attempts

	mu      sync.Mutex
	workers int
	ticking atomic.Bool // set and cleared with mu
	wg      *sync.WaitGroup
	done    <-chan struct{}
}

// jump is a step of the clock that came late: the process had stood, or its CPUs were busy.
type jump struct {
	from, to int64
}

// share is the jump's size against the time since.
func (j jump) share(now int64) float64 { return float64(j.to-j.from) / float64(now-j.to+1) }

// New makes a clock that ends when done is closed. It counts its goroutine in wg. While workers run
// it calls check every 25 ticks, half a second.
func New(wg *sync.WaitGroup, done <-chan struct{}, check func()) *Clock {
	return &Clock{Base: time.Now(), wg: wg, done: done, check: check}
}

// Enter is called by a worker before its first record. It brings the clock up to date.
func (k *Clock) Enter() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.workers++
	k.move()
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
		k.mu.Lock()
		k.move()
		k.mu.Unlock()
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

// move brings the clock up to date; the caller holds mu. A jump is registered before the reading
// changes, for Latest.
func (k *Clock) move() {
	is := jump{from: k.Reading.Load(), to: int64(time.Since(k.Base))}
	if is.to-is.from > int64(Lag) && k.ticking.Load() {
		var jumps []jump
		if had := k.jumps.Load(); had != nil {
			jumps = slices.Clone(*had)
		}
		if jumps = append(jumps, is); len(jumps) > mostJumps {
			least := slices.MinFunc(jumps, func(a, b jump) int { return cmp.Compare(a.share(is.to), b.share(is.to)) })
			jumps = slices.DeleteFunc(jumps, func(j jump) bool { return j == least })
		}
		k.jumps.Store(&jumps)
	}
	k.Reading.Store(is.to)
}

// Latest returns the last moment at which the clock may have had a reading, as nanoseconds since
// Base. That is now if it still has it.
func (k *Clock) Latest(reading int64) int64 {
	if k.Reading.Load() == reading {
		return int64(time.Since(k.Base))
	}
	if jumps := k.jumps.Load(); jumps != nil {
		for _, j := range *jumps {
			if j.from == reading {
				return j.to
			}
		}
	}
	return reading + int64(Lag)
}

// At returns the wall and monotonic time of a coarse reading.
func (k *Clock) At(reading int64) time.Time { return k.Base.Add(time.Duration(reading)) }

// About returns the time. It lags by at most a tick and the scheduler's delay while the clock
// ticks, and is exact otherwise. Use it for events that come by the thousand.
func (k *Clock) About() time.Time {
	if k.ticking.Load() {
		return k.At(k.Reading.Load())
	}
	return time.Now()
}
