package main

import (
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// A meter measures this process between begin and end. Programs begin at
// their first record, so that joining the group is outside.
type meter struct {
	once sync.Once
	from usage
}

// usage is what the process has used up at a point in time.
type usage struct {
	at  time.Time
	cpu time.Duration
	mem runtime.MemStats
}

func (m *meter) begin() { m.once.Do(func() { m.from = used() }) }

func (m *meter) end(records int64) report {
	to := used()
	return report{
		Records:   records,
		Seconds:   to.at.Sub(m.from.at).Seconds(),
		CPU:       (to.cpu - m.from.cpu).Seconds(),
		Mallocs:   to.mem.Mallocs - m.from.mem.Mallocs,
		Bytes:     to.mem.TotalAlloc - m.from.mem.TotalAlloc,
		HeapInuse: to.mem.HeapInuse,
	}
}

func used() usage {
	u := usage{at: time.Now()}
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		panic(fmt.Sprintf("getrusage: %v", err)) // it has no way to fail for oneself
	}
	u.cpu = time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
	runtime.ReadMemStats(&u.mem)
	return u
}
