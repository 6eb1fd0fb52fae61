package work

import (
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"
)

// A Report is what a program measured.
type Report struct {
	Seconds float64 // from the first record until all are handled and all dead letters written
	CPU     float64 // seconds of this process in that time, user and system
	Healthy float64 // seconds until the last record was handled that does not fail
	P99     float64 // in ms, of offered ones that do not fail: from their due time to their handler
	Handled int     // records whose handler succeeded
	Again   int     // of them, how often one succeeded once more
	// Disorder counts records whose handler began before that of the same key's last one ended.
	Disorder int
}

// A meter measures this process from begin on, the first call of which counts.
type meter struct {
	once sync.Once
	at   time.Time
	cpu  time.Duration
}

func (m *meter) begin() { m.once.Do(func() { m.at, m.cpu = time.Now(), used() }) }

// seconds are those since the beginning, on the clock and of CPU.
func (m *meter) seconds() (clock, cpu float64) {
	return time.Since(m.at).Seconds(), (used() - m.cpu).Seconds()
}

// used is the CPU time of this process.
func used() time.Duration {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		panic(fmt.Sprintf("getrusage: %v", err)) // it has no way to fail for oneself
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

// percentile is the smallest of the values that at least so many of a hundred do not exceed
// (nearest rank), and 0 for none.
func percentile(values []int64, percent int) int64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	rank := (len(values)*percent + 99) / 100
	return values[max(rank, 1)-1]
}
