package redrive

import (
	"cmp"
	"iter"
	"slices"
	"sync"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

// letterState is what is known of a letter of which more was seen than that it was sent.
type letterState struct {
	group string           // whose it is; empty where that is not known
	at    headers.Position // where it is now: the copy of it that was written last; empty: its target
	hops  int              // of that copy
	// class and fingerprint are of its last failure; empty while it has not failed.
	class, fingerprint string
	deadAt             bool // it is a dead letter again
	discarded          bool // the ledger says that the consumer discarded it
}

// stage is how far a letter is.
type stage uint8

const (
	fresh    stage = iota // on its target, for all that is known
	retrying              // in a retry topic, after it failed again
	landed                // it is a dead letter again, which is to be written down
	stages
)

func (fl *letterState) stage() stage {
	switch {
	case fl == nil:
		return fresh
	case fl.deadAt:
		return landed
	case fl.class != "":
		return retrying
	}
	return fresh
}

// inFlight are the letters of a run that were sent and have no outcome yet, and what became of the others. Nearly all of them go
// straight to their outcome: of such a one there is a bit in a set and a place in a line, some thirty bytes.
//
// It has a lock, since the watch and the sender work on it.
type inFlight struct {
	mu     sync.Mutex
	out    selection              // those that were sent and have no outcome
	seen   map[place]*letterState // those of which a copy was seen, or that were discarded: also before the sender knew that they are there
	counts Counts
	staged [stages]int64  // how many of out are that far
	lines  queues         // those of out that are not landed
	lost   selection      // those whose entry does not say where their copies are
	done   []place        // those that are
	failed map[place]bool // those that failed at least once: whether judged has that
	judged judged
}

// judged is how many letters the groups have passed for the first time since somebody asked, and how many of these failed then. A failure
// is seen sooner than a success, which shows only as the group's offset moves. So both count as it does, or a share of them would mean
// nothing.
type judged struct{ letters, failed int }

// newInFlight takes over what was sent before.
func newInFlight(counts Counts, sent []sentLetter) *inFlight {
	f := &inFlight{out: selection{}, seen: map[place]*letterState{}, counts: counts, failed: map[place]bool{}, lines: queues{}, lost: selection{}}
	slices.SortFunc(sent, func(a, b sentLetter) int { return cmp.Compare(a.offset, b.offset) }) // what lines are good at
	for _, l := range sent {
		f.out.add(l.at.partition, l.at.offset)
		f.staged[fresh]++
		if l.topic == "" {
			f.lost.add(l.at.partition, l.at.offset)
			continue
		}
		f.lines.line(l.queueKey).add(queuedLetter{l.offset, l.at.offset, l.at.partition})
	}
	return f
}

// sentLetter is a letter whose copy is committed: where it stands, and in which line at what offset its copy is.
type sentLetter struct {
	at place
	queueKey
	offset int64
}

// sent takes down letters that are on their targets.
func (f *inFlight) sent(letters iter.Seq[sentLetter]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var (
		last queueKey
		line *queue
	)
	for l := range letters {
		f.counts.Sent++
		f.out.add(l.at.partition, l.at.offset)
		if fl := f.seen[l.at]; fl != nil { // the consumer was faster than the broker's answer
			fl.group, fl.hops = l.group, max(fl.hops, 1)
			f.enter(l.at, fl)
		} else {
			f.staged[fresh]++
		}
		if line == nil || last != l.queueKey {
			last, line = l.queueKey, f.lines.line(l.queueKey)
		}
		line.add(queuedLetter{l.offset, l.at.offset, l.at.partition})
	}
}

// leave takes down that letters were sent that are not followed.
func (f *inFlight) leave(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts.Sent += n
	f.counts.Unfollowed += n
}

// enter counts a letter of which a copy was seen, and lines it up where that is.
func (f *inFlight) enter(letter place, fl *letterState) {
	f.staged[fl.stage()]++
	switch {
	case fl.stage() == landed:
		f.done = append(f.done, letter)
	case fl.at.Topic != "":
		f.lines.line(queueKey{fl.group, fl.at.Topic, fl.at.Partition}).add(queuedLetter{fl.at.Offset, letter.offset, letter.partition})
	}
}

// count finds what is known of a letter. The caller calls back when it has changed it.
func (f *inFlight) count(letter place) (fl *letterState, changed func()) {
	sent := f.out.has(letter.partition, letter.offset)
	if fl = f.seen[letter]; fl == nil {
		fl = &letterState{}
		if sent {
			fl.hops = 1
		}
		f.seen[letter] = fl
	}
	if !sent {
		return fl, func() {}
	}
	was := *fl
	return fl, func() {
		if was != *fl {
			f.staged[was.stage()]--
			f.enter(letter, fl)
		}
	}
}

// observedCopy is a copy of a letter of the run, as the watch found it.
type observedCopy struct {
	letter             place
	at                 headers.Position
	group              string
	hops               int
	class, fingerprint string
	dead               bool
}

// onCopy takes down a copy that was found. It reports whether that is the letter's first failure.
func (f *inFlight) onCopy(s observedCopy) (first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	written := s.class == "" && s.hops <= 1 && !s.dead // by the run
	if written && !f.position(s) {
		return false
	}
	fl, changed := f.count(s.letter)
	defer changed()
	if written && (fl.hops > 1 || fl.class != "") { // it has moved on
		return false
	}
	if s.class == "" { // the copy that the run wrote, or one that waits behind its key's head
		if written || fl.at.Topic == "" || s.hops > fl.hops {
			fl.at, fl.hops = s.at, s.hops
		}
		fl.group = s.group
		return false
	}
	if s.dead || s.hops > fl.hops || s.hops == fl.hops && fl.class == "" {
		fl.at, fl.hops, fl.class, fl.fingerprint, fl.deadAt, fl.group = s.at, s.hops, s.class, s.fingerprint, s.dead, s.group
	}
	if _, again := f.failed[s.letter]; again {
		return false
	}
	f.failed[s.letter] = false
	return true
}

// position reports whether a copy that the run wrote is the one that counts. The watch reads uncommitted, and so it sees those of
// transactions that were aborted as well: only the answer to the commit, or the ledger's entry, says where a letter stands. Where the
// entry does not, the copy that came last does.
func (f *inFlight) position(s observedCopy) bool {
	if !f.out.has(s.letter.partition, s.letter.offset) {
		return false
	}
	if f.lost.has(s.letter.partition, s.letter.offset) {
		return true
	}
	q := f.lines[queueKey{"", s.at.Topic, s.at.Partition}]
	return q != nil && q.has(queuedLetter{s.at.Offset, s.letter.offset, s.letter.partition})
}

// discard takes down that the consumer discarded a letter: that is its outcome, once the group is past it.
func (f *inFlight) discard(letter place) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fl, changed := f.count(letter)
	defer changed()
	fl.discarded = true
}

// unfinished is how many letters are on their targets and have not been passed: the run's own lag.
func (f *inFlight) unfinished() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.staged[fresh]
}

// countsNow are the counts as of now.
func (f *inFlight) countsNow() Counts {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.counts.clone()
	c.Pending, c.Retrying = f.staged[fresh]+f.staged[retrying]+f.staged[landed], f.staged[retrying]
	return c
}

// skip counts a letter that is not sent.
func (f *inFlight) skip(why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts.addSkipped(why)
}

// verdict is what became of a letter.
type verdict struct {
	letter place
	entry  dlq.Entry
	heard  bool // a consumer has said that it discarded the letter
}

// judge tells how many letters had a first outcome since it was asked last.
func (f *inFlight) judge() judged {
	f.mu.Lock()
	defer f.mu.Unlock()
	j := f.judged
	f.judged = judged{}
	return j
}

// resolve finds the letters that have an outcome: passed says whether the group's committed offset is past a position, that was read
// before the watch read on to where the topics ended then. A letter that has an outcome is not in flight any more.
func (f *inFlight) resolve(passed func(group string, at headers.Position) progress) (done []verdict) {
	f.mu.Lock()
	defer f.mu.Unlock()
	settle := func(letter place, fl *letterState, e dlq.Entry) {
		f.out.remove(letter.partition, letter.offset)
		delete(f.seen, letter)
		f.staged[fl.stage()]--
		f.counts.add(e)
		if _, failed := f.failed[letter]; !failed && (e.State == dlq.Succeeded || e.State == dlq.Discarded) {
			f.judged.letters++
		}
		done = append(done, verdict{letter, e, fl != nil && fl.discarded})
	}
	for _, letter := range f.done {
		if fl := f.seen[letter]; fl != nil && f.out.has(letter.partition, letter.offset) { // or it was in the list twice
			settle(letter, fl, dlq.Entry{State: dlq.Failed, Class: fl.class, Target: fl.at})
		}
	}
	f.done = nil
	for line, q := range f.lines {
		for next, ok := q.first(); ok; next, ok = q.first() {
			letter := next.place()
			fl := f.seen[letter]
			waits := f.out.has(letter.partition, letter.offset) && fl.stage() != landed && (fl == nil || fl.at.Topic == "" || line.is(fl, next.offset))
			counted, failed := f.failed[letter]
			if waits || failed && !counted {
				at := headers.Position{Topic: line.topic, Partition: line.partition, Offset: next.offset}
				s := passed(line.group, at)
				if s == progressBehind {
					break // and so are all behind it
				}
				if failed && !counted {
					f.failed[letter] = true
					if s == progressPast {
						f.judged.letters++
						f.judged.failed++
					}
				}
				if !waits {
					q.pop()
					continue
				}
				state := dlq.Succeeded
				switch {
				case fl != nil && fl.discarded:
					state = dlq.Discarded
				case s == progressUnknown:
					state = dlq.Unknown
				}
				settle(letter, fl, dlq.Entry{State: state, Target: at})
			}
			q.pop()
		}
		if _, ok := q.first(); !ok {
			delete(f.lines, line)
		}
	}
	return done
}

// progress is where a group is, relative to a position.
type progress uint8

const (
	progressBehind  progress = iota // it has yet to come by
	progressPast                    // its committed offset is past it
	progressUnknown                 // it will never be known whether it ran
)

func (c *Counts) add(e dlq.Entry) {
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

func (c *Counts) addSkipped(why string) {
	if c.Skipped == nil {
		c.Skipped = map[string]int64{}
	}
	c.Skipped[why]++
}

// topics are those on which letters are in flight.
func (f *inFlight) topics() (names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for line := range f.lines {
		if !slices.Contains(names, line.topic) {
			names = append(names, line.topic)
		}
	}
	return names
}
