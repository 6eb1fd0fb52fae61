package redrive

import "time"

// bucket is a token bucket: it fills at a rate, up to its size, and each record takes a token. A
// caller that comes later than its wait, because of a busy machine or a transaction, loses no
// tokens for a delay of up to maxLate. With a small bucket that loss would be much of the rate. In
// any second at most rate and size are taken, or rate and its yield in maxLate if that is more. It
// has no lock.
type bucket struct {
	size  float64
	rate  float64 // tokens a second; negative without a limit
	level float64
	at    time.Time
	due   time.Time // the time of the token for which a caller waits
}

// maxLate is the delay for which a bucket makes up. A later caller has paused.
const maxLate = 100 * time.Millisecond

func newBucket(rate float64, size int, now time.Time) *bucket {
	return &bucket{size: float64(size), rate: rate, level: float64(size), at: now}
}

// pace sets the rate from now on.
func (b *bucket) pace(rate float64, now time.Time) {
	b.fill(now)
	b.rate = rate
}

func (b *bucket) fill(now time.Time) {
	if b.rate > 0 && now.After(b.at) {
		b.level += b.rate * now.Sub(b.at).Seconds()
		if now.Sub(b.due) > maxLate {
			b.level = min(b.size, b.level)
		}
	}
	b.at = now
}

// take takes a token, or returns the wait for one.
func (b *bucket) take(now time.Time) (wait time.Duration) {
	if b.rate < 0 {
		return 0
	}
	b.fill(now)
	if b.level >= 1 {
		b.level--
		return 0
	}
	wait = time.Second
	if b.rate > 0 {
		wait = max(time.Duration((1-b.level)/b.rate*float64(time.Second)), time.Microsecond)
	}
	b.due = now.Add(wait)
	return wait
}
