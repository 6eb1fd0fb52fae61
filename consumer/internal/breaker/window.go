package breaker

import "time"

// Window is the time over which runs are counted, in buckets of a second. A run leaves the window
// after nine to ten seconds.
const (
	Window  = 10 * time.Second
	bucket  = time.Second
	buckets = int64(Window / bucket)
)

// counts are numbers of runs.
type counts struct {
	good, failed, defects int64
	again                 int64 // failed runs that were retries
	first, firstBad       int64 // runs of source records, and those that failed
}

func (c *counts) runs() int64 { return c.good + c.failed + c.defects }

func (c *counts) add(d *counts, times int64) {
	c.good += times * d.good
	c.failed += times * d.failed
	c.defects += times * d.defects
	c.again += times * d.again
	c.first += times * d.first
	c.firstBad += times * d.firstBad
}

// window holds the counts of the last seconds, and their sum.
type window struct {
	by  [buckets]counts
	at  int64 // the number of the bucket that counts now
	sum counts
}

// roll drops the buckets that have left the window.
func (w *window) roll(now time.Duration) {
	to := int64(now / bucket)
	if to-w.at >= buckets {
		*w = window{at: to}
		return
	}
	for w.at < to {
		w.at++
		old := &w.by[w.at%buckets]
		w.sum.add(old, -1)
		*old = counts{}
	}
}

// add counts runs now.
func (w *window) add(c *counts) {
	w.by[w.at%buckets].add(c, 1)
	w.sum.add(c, 1)
}

// clear forgets all runs.
func (w *window) clear() { *w = window{at: w.at} }
