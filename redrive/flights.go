package redrive

import (
	"container/heap"
	"slices"
	"sync"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

// flight is a letter that was brought back and has no outcome yet.
type flight struct {
	group string           // whose it is; empty where that is not known
	at    headers.Position // where it is now: its target, or the copy of it that was written last
	hops  int              // of that copy
	// class and fingerprint are of its last failure; empty while it has not failed.
	class, fingerprint string
	dead               bool // it is a dead letter again
	discarded          bool // the ledger says that the consumer discarded it
}

// stage is how far a flight is.
type stage uint8

const (
	fresh    stage = iota // on its target, for all that is known
	retrying              // in a retry topic, after it failed again
	landed                // it has its outcome, which is to be written down
	stages
)

func (fl *flight) stage() stage {
	switch {
	case fl.dead || fl.discarded:
		return landed
	case fl.class != "":
		return retrying
	}
	return fresh
}

// flights are those of a run, and what became of the others. It has a lock, since the watch and the sender work on it.
type flights struct {
	mu     sync.Mutex
	by     map[place]*flight
	early  map[place]*flight // seen to fail before the sender knew that they are there
	counts Counts
	staged [stages]int64  // how many of by are that far
	lines  queues         // those of by that have no outcome
	done   []place        // those of by that have one
	failed map[place]bool // those that failed at least once, and have been counted for that
}

func newFlights(counts Counts, by map[place]*flight) *flights {
	f := &flights{by: by, early: map[place]*flight{}, counts: counts, failed: map[place]bool{}, lines: queues{}}
	for letter, fl := range by {
		f.enter(letter, fl)
	}
	return f
}

// enter lines a flight up.
func (f *flights) enter(letter place, fl *flight) {
	f.staged[fl.stage()]++
	if fl.stage() == landed {
		f.done = append(f.done, letter)
	} else {
		f.lines.add(fl, letter)
	}
}

// flying finds a flight, and where it is not known yet notes it among the early ones. The caller calls back when it has changed it.
func (f *flights) flying(letter place) (fl *flight, changed func()) {
	if fl = f.by[letter]; fl != nil {
		was := *fl
		return fl, func() {
			if was != *fl {
				f.staged[was.stage()]--
				f.enter(letter, fl)
			}
		}
	}
	if fl = f.early[letter]; fl == nil {
		fl = &flight{}
		f.early[letter] = fl
	}
	return fl, func() {}
}

// sent takes down letters that are on their targets.
func (f *flights) sent(letters []sentLetter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range letters {
		f.counts.Sent++
		next := &flight{group: l.group, at: l.target, hops: l.hops}
		// The consumer was faster than the broker's answer; or the watch, which reads uncommitted, saw a copy of a transaction that was
		// aborted: where the copy stands that counts, only the answer says.
		if seen := f.early[l.at]; seen != nil {
			delete(f.early, l.at)
			seen.group = l.group
			if seen.class == "" && seen.hops <= next.hops {
				seen.at, seen.hops = next.at, next.hops
			}
			next = seen
		}
		f.by[l.at] = next
		f.enter(l.at, next)
	}
}

// sentLetter is a letter whose copy is committed.
type sentLetter struct {
	at     place
	target headers.Position
	hops   int
	group  string
}

// sighting is a copy of a letter of the run, as the watch found it.
type sighting struct {
	letter             place
	at                 headers.Position
	group              string
	hops               int
	class, fingerprint string
	dead               bool
}

// seen takes down a copy that was found. It reports whether that is the letter's first failure.
func (f *flights) seen(s sighting) (first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fl, changed := f.flying(s.letter)
	defer changed()
	if s.class == "" { // the copy that the run wrote, or one that waits behind its key's head
		if fl.at.Topic == "" || s.hops > fl.hops {
			fl.at, fl.hops = s.at, s.hops
		}
		fl.group = s.group
		return false
	}
	if s.dead || s.hops > fl.hops || s.hops == fl.hops && fl.class == "" {
		fl.at, fl.hops, fl.class, fl.fingerprint, fl.dead, fl.group = s.at, s.hops, s.class, s.fingerprint, s.dead, s.group
	}
	if f.failed[s.letter] {
		return false
	}
	f.failed[s.letter] = true
	return true
}

// discard takes down that the consumer discarded a letter.
func (f *flights) discard(letter place) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fl, changed := f.flying(letter)
	defer changed()
	fl.discarded = true
}

// unfinished is how many letters are on their targets and have not been passed: the run's own lag.
func (f *flights) unfinished() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.staged[fresh]
}

// tally are the counts as of now.
func (f *flights) tally() Counts {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.counts.clone()
	c.Pending, c.Retrying = int64(len(f.by)), f.staged[retrying]
	return c
}

// skip counts a letter that is not sent.
func (f *flights) skip(why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts.skip(why)
}

// verdict is what became of a letter.
type verdict struct {
	letter place
	entry  dlq.Entry
}

// settle finds the letters that have an outcome: passed says whether the group's committed offset is past a position, that was read
// before the watch read on to where the topics ended then. A letter that has an outcome is not in flight any more.
func (f *flights) settle(passed func(group string, at headers.Position) standing) (done []verdict) {
	f.mu.Lock()
	defer f.mu.Unlock()
	settle := func(letter place, fl *flight, e dlq.Entry) {
		e.Target = fl.at
		delete(f.by, letter)
		f.staged[fl.stage()]--
		f.counts.settle(e)
		done = append(done, verdict{letter, e})
	}
	for _, letter := range f.done {
		switch fl := f.by[letter]; {
		case fl == nil: // it was in the list twice
		case fl.dead:
			settle(letter, fl, dlq.Entry{State: dlq.Failed, Class: fl.class})
		case fl.discarded:
			settle(letter, fl, dlq.Entry{State: dlq.Discarded})
		}
	}
	f.done = nil
	for line, q := range f.lines {
		for q.Len() > 0 {
			next := (*q)[0]
			if fl := f.by[next.letter]; line.is(fl, next.offset) && fl.stage() != landed {
				s := passed(fl.group, fl.at)
				if s == standsBehind {
					break // and so are all behind it
				}
				state := dlq.Succeeded
				if s == standsUnknown {
					state = dlq.Unknown
				}
				settle(next.letter, fl, dlq.Entry{State: state})
			}
			heap.Pop(q)
		}
		if q.Len() == 0 {
			delete(f.lines, line)
		}
	}
	return done
}

// standing is where a group is, relative to a position.
type standing uint8

const (
	standsBehind  standing = iota // it has yet to come by
	standsPast                    // its committed offset is past it
	standsUnknown                 // it will never be known whether it ran
)

func (c *Counts) settle(e dlq.Entry) {
	switch e.State {
	case dlq.Succeeded:
		c.Succeeded++
	case dlq.Failed:
		c.Failed++
		if c.FailedByClass == nil {
			c.FailedByClass = map[string]int64{}
		}
		c.FailedByClass[e.Class]++
	case dlq.Discarded:
		c.Discarded++
	case dlq.Unknown:
		c.Unknown++
	}
}

func (c *Counts) skip(why string) {
	if c.Skipped == nil {
		c.Skipped = map[string]int64{}
	}
	c.Skipped[why]++
}

// topics are those on which letters are in flight.
func (f *flights) topics() (names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for line := range f.lines {
		if !slices.Contains(names, line.topic) {
			names = append(names, line.topic)
		}
	}
	return names
}
