package inflight

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/internal/letters"
)

// Letters holds the letters of a run that are in flight, and the counts of the others. Most letters
// succeed without a further copy. Each of these takes a bit in a set and an entry of a queue, some
// thirty bytes.
type Letters struct {
	mu  sync.Mutex
	out letters.Set // sent, without an outcome
	// seen has the letters with an observed copy or a discard report. A letter may be seen before
	// the answer to its commit.
	seen   map[letters.Place]*letterState
	counts Counts
	staged [stages]int64          // number of letters in out by stage
	lines  queues                 // of out, the letters that are not dead again
	done   []letters.Place        // of out, the letters that are dead again
	lost   letters.Set            // letters whose entry does not name the position of the copy
	failed map[letters.Place]bool // letters that failed at least once; true once judged counts it
	judged FirstOutcomes
	// by state, the letters that are not in out: a dead copy corrects their outcome
	settled map[dlq.State]letters.Set
	silent  silences
}

// FirstOutcomes counts the letters that their groups have passed for the first time, and the
// failures among them. A failure shows when its copy is written, but a success only when the
// group's offset moves. Both count when the offset moves, because otherwise the share of failures
// would mean nothing. Of an unfollowed letter no offset is known: a failure counts at once, and
// silence for a window counts as success.
type FirstOutcomes struct{ Letters, Failed int }

// New returns the state of a run: its counts, the letters that were sent earlier and have no
// outcome, and by state those that have one. It takes settled over.
func New(counts Counts, sent []Sent, settled map[dlq.State]letters.Set) *Letters {
	f := &Letters{
		out: letters.Set{}, seen: map[letters.Place]*letterState{}, counts: counts, failed: map[letters.Place]bool{}, lines: queues{}, lost: letters.Set{},
		settled: map[dlq.State]letters.Set{},
	}
	for _, state := range []dlq.State{dlq.Succeeded, dlq.Discarded, dlq.Unknown, dlq.Unfollowed} {
		if f.settled[state] = settled[state]; settled[state] == nil {
			f.settled[state] = letters.Set{}
		}
	}
	f.silent.add(f.settled[dlq.Unfollowed].Len())
	// queues need their letters in the order of offsets
	slices.SortFunc(sent, func(a, b Sent) int { return cmp.Compare(a.Offset, b.Offset) })
	for _, l := range sent {
		f.out.Add(l.At)
		f.staged[fresh]++
		if l.Topic == "" {
			f.lost.Add(l.At)
			continue
		}
		f.lines.line(l.QueueKey).add(queuedLetter{l.Offset, l.At.Offset, l.At.Partition})
	}
	return f
}

// Sent is a letter with a committed copy, and the queue and the offset of that copy. The topic is
// empty if it is unknown.
type Sent struct {
	At letters.Place
	QueueKey
	Offset int64
}

// SentTo returns a letter of a group with a copy at a position. The group is empty if it is
// unknown.
func SentTo(at letters.Place, group string, copied headers.Position) Sent {
	return Sent{at, QueueKey{group, copied.Topic, copied.Partition}, copied.Offset}
}

// Sent records letters whose copies are committed, and other letters that were sent with them and
// are not followed.
func (f *Letters) Sent(letters []Sent, unfollowed []letters.Place) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts.Sent += int64(len(letters) + len(unfollowed))
	f.counts.Unfollowed += int64(len(unfollowed))
	f.silent.add(int64(len(unfollowed)))
	for _, at := range unfollowed {
		f.settled[dlq.Unfollowed].Add(at)
		f.correct(at) // the watch may have read a copy before the answer to the commit
	}
	var (
		last QueueKey
		line *queue
	)
	for _, l := range letters {
		f.out.Add(l.At)
		if fl := f.seen[l.At]; fl != nil { // the watch read a copy before the answer to the commit
			fl.group, fl.hops = l.Group, max(fl.hops, 1)
			f.addCopy(l.At, fl)
		} else {
			f.staged[fresh]++
		}
		if line == nil || last != l.QueueKey {
			last, line = l.QueueKey, f.lines.line(l.QueueKey)
		}
		line.add(queuedLetter{l.Offset, l.At.Offset, l.At.Partition})
	}
}

// addCopy counts a letter with an observed copy, and queues it at that copy's position.
func (f *Letters) addCopy(letter letters.Place, fl *letterState) {
	f.staged[fl.stage()]++
	switch {
	case fl.stage() == landed:
		f.done = append(f.done, letter)
	case fl.at.Topic != "":
		f.lines.line(QueueKey{fl.group, fl.at.Topic, fl.at.Partition}).add(queuedLetter{fl.at.Offset, letter.Offset, letter.Partition})
	}
}

// count returns the state of a letter. The caller calls changed after a change of the state.
func (f *Letters) count(letter letters.Place) (fl *letterState, changed func()) {
	sent := f.out.Has(letter)
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
			f.addCopy(letter, fl)
		}
	}
}

// ObservedCopy is a copy of a letter of the run that the watch has read.
type ObservedCopy struct {
	Letter letters.Place
	At     headers.Position
	Group  string
	Hops   int
	Class  string
	Dead   bool
}

// OnCopy records a copy. It reports whether the copy shows the letter's first failure.
func (f *Letters) OnCopy(s ObservedCopy) (first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	written := s.Class == "" && s.Hops <= 1 && !s.Dead // a copy that the run wrote
	if written && !f.position(s) {
		return false
	}
	fl, changed := f.count(s.Letter)
	defer changed()
	if written && (fl.hops > 1 || fl.class != "") { // it has moved on
		return false
	}
	// the run's copy, or a copy that waits behind an earlier record of its key; a dead letter has
	// failed, whoever wrote it
	if s.Class == "" && !s.Dead {
		if written || fl.at.Topic == "" || s.Hops > fl.hops {
			fl.at, fl.hops = s.At, s.Hops
		}
		fl.group = s.Group
		return false
	}
	if s.Dead || s.Hops > fl.hops || s.Hops == fl.hops && fl.class == "" {
		fl.at, fl.hops, fl.class, fl.deadAt, fl.group = s.At, s.Hops, s.Class, s.Dead, s.Group
	}
	_, again := f.failed[s.Letter]
	if !again {
		f.failed[s.Letter] = false
	}
	f.correct(s.Letter)
	return !again
}

// correct judges a failure of a letter that has its outcome already, and takes the outcome back if
// the letter is dead again.
func (f *Letters) correct(letter letters.Place) {
	counted, failed := f.failed[letter]
	for state, set := range f.settled {
		if !failed || !set.Has(letter) {
			continue
		}
		if !counted {
			f.failed[letter] = true
			f.judged.Failed++
			switch state {
			case dlq.Unfollowed:
				f.silent.failed++
				f.judged.Letters++
			case dlq.Unknown:
				f.judged.Letters++
			}
		}
		if fl := f.seen[letter]; fl.stage() == landed {
			set.Remove(letter)
			f.counts.remove(state)
			f.out.Add(letter)
			f.addCopy(letter, fl)
		}
	}
}

// position reports whether an observed copy of the run is at the letter's position. The watch reads
// uncommitted and sees copies of aborted transactions, too. Only the answer to the commit, or the
// ledger's entry, names the position. If the entry does not, the last copy counts.
func (f *Letters) position(s ObservedCopy) bool {
	if !f.out.Has(s.Letter) {
		return false
	}
	if f.lost.Has(s.Letter) {
		return true
	}
	q := f.lines[QueueKey{"", s.At.Topic, s.At.Partition}]
	return q != nil && q.has(queuedLetter{s.At.Offset, s.Letter.Offset, s.Letter.Partition})
}

// Discard records a consumer's discard report about a letter, or that it was revoked. A report
// becomes the outcome once the group has passed the letter.
func (f *Letters) Discard(letter letters.Place, reported bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !reported && f.seen[letter] == nil {
		return // as after the outcome
	}
	fl, changed := f.count(letter)
	defer changed()
	fl.discarded = reported
}

// Unfinished returns the number of letters on their targets that their groups have not passed: the
// run's own lag.
func (f *Letters) Unfinished() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.staged[fresh]
}

// Silent reports whether unfollowed letters were sent so lately that they may still fail.
func (f *Letters) Silent() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.silent.sent) > 0
}

// Counts returns the present counts.
func (f *Letters) Counts() Counts {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.counts
	c.FailedByClass, c.Skipped = maps.Clone(c.FailedByClass), maps.Clone(c.Skipped)
	c.Pending, c.Retrying = f.staged[fresh]+f.staged[retrying]+f.staged[landed], f.staged[retrying]
	return c
}

// Skip counts a skipped letter by its reason.
func (f *Letters) Skip(why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts.AddSkipped(why)
}

// Verdict is a letter's outcome, with its ledger entry.
type Verdict struct {
	Letter   letters.Place
	Entry    dlq.Entry
	Reported bool // a consumer has reported that it discarded the letter
}

// FirstOutcomes returns the first outcomes since its last call. Unfollowed letters that were sent
// before a time, and have not failed, count as a success.
func (f *Letters) FirstOutcomes(before time.Time) FirstOutcomes {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.judged.Letters += int(f.silent.take(before))
	j := f.judged
	f.judged = FirstOutcomes{}
	return j
}

// Resolve removes the letters that have an outcome, and returns the outcomes. passed compares a
// group's committed offset with a position. The offset must be read before the watch reads up to
// the topics' ends.
func (f *Letters) Resolve(passed func(group string, at headers.Position) Progress) (done []Verdict) {
	f.mu.Lock()
	defer f.mu.Unlock()
	resolve := func(letter letters.Place, fl *letterState, e dlq.Entry) {
		f.out.Remove(letter)
		delete(f.seen, letter)
		f.staged[fl.stage()]--
		f.counts.Add(e)
		if set := f.settled[e.State]; set != nil {
			set.Add(letter)
		}
		if _, failed := f.failed[letter]; !failed && (e.State == dlq.Succeeded || e.State == dlq.Discarded) {
			f.judged.Letters++
		}
		done = append(done, Verdict{letter, e, fl != nil && fl.discarded})
	}
	for _, letter := range f.done {
		if fl := f.seen[letter]; fl != nil && f.out.Has(letter) { // done may hold a letter twice
			resolve(letter, fl, dlq.Entry{State: dlq.Failed, Class: fl.class, Target: fl.at})
		}
	}
	f.done = nil
	for line, q := range f.lines {
		for next, ok := q.first(); ok; next, ok = q.first() {
			letter := next.place()
			fl := f.seen[letter]
			waits := f.out.Has(letter) && fl.stage() != landed && (fl == nil || fl.at.Topic == "" || line.is(fl, next.offset))
			counted, failed := f.failed[letter]
			if waits || failed && !counted {
				at := headers.Position{Topic: line.Topic, Partition: line.Partition, Offset: next.offset}
				s := passed(line.Group, at)
				if s == Behind {
					break // and all letters behind it
				}
				if failed && !counted {
					f.failed[letter] = true
					if s == Past {
						f.judged.Letters++
						f.judged.Failed++
					}
				}
				if !waits {
					q.pop()
					continue
				}
				resolve(letter, fl, dlq.Entry{State: fl.passed(s), Target: at})
			}
			q.pop()
		}
		if _, ok := q.first(); !ok {
			delete(f.lines, line)
		}
	}
	return done
}

// Fronts returns, by queue, the position of the first letter that waits.
func (f *Letters) Fronts() (fronts []headers.Position) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for line, q := range f.lines {
		if next, ok := q.first(); ok {
			fronts = append(fronts, headers.Position{Topic: line.Topic, Partition: line.Partition, Offset: next.offset})
		}
	}
	return fronts
}

// Topics returns the topics on which letters are in flight, each once or more.
func (f *Letters) Topics() (names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for line := range f.lines {
		names = append(names, line.Topic)
	}
	return names
}
