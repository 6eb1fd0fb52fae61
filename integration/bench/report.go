package main

import (
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// A report is what a program measured. Times are seconds, latencies
// milliseconds.
type report struct {
	Records   int64
	Seconds   float64
	CPU       float64 // of this process, user and system
	Mallocs   uint64
	Bytes     uint64
	HeapInuse uint64
	P50, P99  float64

	// Of the benches of parked records: HeapInuse is then the most that was
	// in use just after a collection.
	Late      []spread // by tier: start of the handler after the due time
	Parked    int64    // most records that waited, by siding's metrics
	Released  int64    // bytes that siding evicted, and
	Refetched int64    // bytes that it fetched again, as it counts them
	Held      int64    // bytes of all that was parked, as it would count them
	Fetched   int64    // bytes of all answers to fetches, and
	Filled    int64    // those that the filled topics have on the broker

	Outage outageCounts
	Before float64 // rate of the same lanes before a rebalance
	AtOnce int64   // most handlers that ran at a time

	// Of a group with many partitions. HeapInuse is then the heap before the first record.
	Ready  float64 // seconds until each partition has its member, and
	Joined float64 // until each has one again after one more joined
	Commit int64   // bytes of the largest commit
}

func (r report) rate() float64             { return float64(r.Records) / r.Seconds }
func (r report) cpuPerMillion() float64    { return r.CPU / float64(r.Records) * 1e6 }
func (r report) mallocsPerRecord() float64 { return float64(r.Mallocs) / float64(r.Records) }
func (r report) bytesPerRecord() float64   { return float64(r.Bytes) / float64(r.Records) }

// p50 is the median latency in milliseconds.
func (r report) p50() float64     { return r.P50 }
func (r report) p99() float64     { return r.P99 }
func (r report) seconds() float64 { return r.Seconds }
func (r report) atOnce() float64  { return float64(r.AtOnce) }

// early counts the records that ran before their time.
func (r report) early() float64 {
	n := 0
	for _, l := range r.Late {
		n += l.Early
	}
	return float64(n)
}

// heapMiB is HeapInuse in MiB.
func (r report) heapMiB() float64 { return float64(r.HeapInuse) / (1 << 20) }

// refetched is the number of bytes read again for each byte that siding evicted. It uses siding's
// own count, or the bytes on the wire beyond the topics' own, whichever is worse. Siding's count
// includes neighbours in a record's batch. The wire also has batches that were cut off at the end
// of an answer, and fetches that were discarded. Bytes on the wire are encoded, and counted as
// siding would count them.
func (r report) refetched() float64 {
	wire := float64(r.Fetched-r.Filled) / float64(r.Filled) * float64(r.Held)
	again := max(float64(r.Refetched), wire, 0)
	return again / float64(max(r.Released, 1))
}

// kept is the rate of the kept lanes while others drain, by their rate before.
func (r report) kept() float64 { return r.rate() / r.Before }

// outageCounts are what an outage did.
type outageCounts struct {
	Calls    int64 // while it lasted, and
	Ordinary int64 // the records offered in that time
	Dead     int64
	// Wait is the longest time in seconds from when a record was due by the pace until it was
	// handled, of those that never failed and were due while the outage lasted.
	Wait float64
	// Recovery is the time from the end of the outage until all records of its second half are
	// handled, in seconds.
	Recovery float64
}

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
