package check

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

const (
	// warmUp is the time in which a process grows: it gets its lanes, and its buffers their sizes.
	warmUp = 30 * time.Second
	// watched is how long a process has to live after that for its sizes to be judged.
	watched = 2 * time.Minute
	// A process may have flatGoroutines and flatBytes more in its last third than in its first, or
	// 1.25 times as many: it may own more lanes by then, with more records that wait.
	flatGoroutines = 50
	flatBytes      = 8 << 20
)

// Flat says how the sizes of a process changed from the first third of its life to the last. They
// are the least ones of their thirds: lanes and parked records come and go, what leaks stays. A
// hold may last for a third, while records wait in memory; its time does not count.
type Flat struct {
	Member     string
	Minutes    float64
	Goroutines [2]int64
	Bytes      [2]int64 // live
}

func (l *Flat) String() string {
	return fmt.Sprintf("%s, %.1f minutes: at least %d goroutines at first and %d at last, %.1f and %.1f MiB live",
		l.Member, l.Minutes, l.Goroutines[0], l.Goroutines[1], float64(l.Bytes[0])/(1<<20), float64(l.Bytes[1])/(1<<20))
}

// flatOf returns the sizes of a member; nil if it did not live long enough.
func flatOf(ev *evidence, name string) *Flat {
	member := ev.journals[name]
	all := member.Vitals
	if len(all) == 0 {
		return nil
	}
	from := all[0].At + int64(warmUp)
	to := min(all[len(all)-1].At, ev.loaded) // a process without work is smaller
	third := (to - from) / 3
	if to-from < int64(watched) {
		return nil
	}
	least := func(from, to int64) (goroutines, live int64) {
		for _, v := range all {
			if v.At >= from && v.At <= to && member.StateAt(v.At).To != "held" {
				goroutines = lesser(goroutines, v.Goroutines)
				live = lesser(live, v.Live)
			}
		}
		return goroutines, live
	}
	is := &Flat{Member: name, Minutes: time.Duration(to - from).Minutes()}
	is.Goroutines[0], is.Bytes[0] = least(from, from+third)
	is.Goroutines[1], is.Bytes[1] = least(to-third, to)
	if is.Goroutines[0] == 0 || is.Goroutines[1] == 0 {
		return nil
	}
	return is
}

// lesser is the lesser of two, where 0 is none.
func lesser(a, b int64) int64 {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// longest returns the sizes of the member that was watched for the longest time; nil if none was.
func longest(ev *evidence) (is *Flat) {
	for _, name := range slices.Sorted(maps.Keys(ev.journals)) {
		if of := flatOf(ev, name); of != nil && (is == nil || of.Minutes > is.Minutes) {
			is = of
		}
	}
	return is
}

// flat: the goroutines and the memory of a process do not grow.
func flat(ev *evidence, f *findings) {
	for _, name := range slices.Sorted(maps.Keys(ev.journals)) {
		is := flatOf(ev, name)
		if is == nil {
			continue
		}
		f.counted["processes watched for growth"]++
		grew := func(of [2]int64, slack int64) bool { return of[1] > of[0]+max(slack, of[0]/4) }
		if grew(is.Goroutines, flatGoroutines) || grew(is.Bytes, flatBytes) {
			f.report(name, -1, -1, "it grew: %v", is)
		}
	}
}
