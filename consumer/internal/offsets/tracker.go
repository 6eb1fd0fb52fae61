package offsets

import (
	"iter"
	"math/bits"
	"sort"
)

// Tracker tracks the unfinished records of one physical partition. Records finish in any order;
// only the floor, below which everything is finished, may be committed.
//
// It tracks offsets, not counts: compaction and transaction markers leave gaps, and a tracker that
// counts records would stall on the first of them. A gap holds no record, so it counts as finished.
//
// The pending set is a bitmap in chunks of 4,096 offsets, kept in ascending order. Chunks exist
// only where records were delivered, so a sparse (compacted) partition costs at most one chunk a
// record. Ordinarily a batch is contiguous and finishes in order: then it costs a handful of word
// writes.
//
// A tracker is not safe for concurrent use; its lane's lock guards it.
// See DESIGN.md, "The committed floor".
type Tracker struct {
	Next      int64 // where the next delivered record may start: all delivered records lie below
	Committed int64 // last offset the broker acknowledged for the group; -1 when there is none
	Pending   int   // records delivered and unfinished
	chunks    []*chunk
	free      *chunk // one spare, so that a steady stream allocates nothing

	// What an earlier owner finished above its floor, at Next or beyond, and the leader epoch up to
	// which it had read.
	earlier      []Span
	earlierEpoch int32
	finished     uint64 // calls that finished records
	acknowledged uint64 // finished, when the accepted commit was made
}

const (
	chunkBits = 4096
	chunkMask = chunkBits - 1
)

// chunk holds the unfinished offsets in [base, base+chunkBits).
type chunk struct {
	base  int64
	count int
	words [chunkBits / 64]uint64
}

// New makes the tracker of a partition that is read from position. committed is the group's offset,
// -1 if it has none.
func New(position, committed int64) Tracker {
	return Tracker{Next: position, Committed: committed}
}

// Deliver registers that the record at offset was handed out. Offsets must ascend. Deliver returns
// false, and changes nothing, for an offset below Next: that record was delivered before.
func (t *Tracker) Deliver(offset int64) bool {
	if offset < t.Next {
		return false
	}
	c := t.at(offset)
	bit := offset & chunkMask
	c.words[bit>>6] |= 1 << (bit & 63)
	c.count++
	t.Pending++
	t.Next = offset + 1
	return true
}

// DeliverRange is Deliver for contiguous offsets, from first to last. It does not check that they
// are new.
func (t *Tracker) DeliverRange(first, last int64) {
	for first <= last {
		c := t.at(first)
		end := min(last, c.base+chunkMask)
		n := int(end - first + 1)
		setRange(&c.words, int(first-c.base), n)
		c.count += n
		t.Pending += n
		first = end + 1
	}
	t.Next = last + 1
}

// Restore registers what an earlier owner finished above the committed offset. The epoch is the
// leader epoch of that commit. Without one, nothing is registered: a log that was truncated since
// may have other records at these offsets.
func (t *Tracker) Restore(finished []Span, epoch int32) {
	if epoch >= 0 && len(finished) > 0 {
		t.earlier, t.earlierEpoch = finished, epoch
	}
}

// Restored reports whether an earlier owner may have finished records that were not read yet.
func (t *Tracker) Restored() bool { return len(t.earlier) > 0 }

// FinishedBefore reports whether an earlier owner finished the record. epoch is the record's: one
// that was written under a later leader than the owner had read from is another record, and so is
// each one behind it: nothing more is registered as finished. Otherwise the next commit would say
// so of them under the later epoch.
func (t *Tracker) FinishedBefore(offset int64, epoch int32) bool {
	if epoch > t.earlierEpoch {
		t.earlier = nil
	}
	for len(t.earlier) > 0 && t.earlier[0].Last < min(offset, t.Next) {
		t.earlier = t.earlier[1:]
	}
	return offset >= t.Next && In(t.earlier, offset)
}

// Skip registers that the reader passed over all records below offset that were not delivered.
func (t *Tracker) Skip(offset int64) {
	t.Next = max(t.Next, offset)
}

// Finish registers that the record at offset is finished. It changes nothing if the record is not
// pending.
func (t *Tracker) Finish(offset int64) { t.FinishRange(offset, offset) }

// FinishRange finishes every delivered record from first to last, and returns their number. The
// range may have gaps.
func (t *Tracker) FinishRange(first, last int64) int {
	finished := 0
	for i := t.search(first); i < len(t.chunks); i++ {
		c := t.chunks[i]
		if c.base > last {
			break
		}
		from := max(first, c.base)
		to := min(last, c.base+chunkMask)
		n := clearRange(&c.words, int(from-c.base), int(to-from+1))
		c.count -= n
		finished += n
	}
	if finished > 0 {
		t.finished++
	}
	t.Pending -= finished
	t.trim()
	return finished
}

// IsFinished reports whether the record at offset was read and is finished, or was passed over.
func (t *Tracker) IsFinished(offset int64) bool {
	if offset >= t.Next {
		return false
	}
	i := t.search(offset)
	if i == len(t.chunks) || t.chunks[i].base > offset {
		return true
	}
	bit := offset & chunkMask
	return t.chunks[i].words[bit>>6]&(1<<(bit&63)) == 0
}

// Floor is the offset to commit: everything below it is finished.
func (t *Tracker) Floor() int64 {
	for _, c := range t.chunks {
		if c.count == 0 {
			continue
		}
		for w, word := range c.words {
			if word != 0 {
				return c.base + int64(w)<<6 + int64(bits.TrailingZeros64(word))
			}
		}
	}
	return t.Next
}

// maxSpans is more than metadata can hold.
const maxSpans = MetadataLimit

// FinishedAbove returns the spans above the floor in which all records are finished, the first ones
// if there are very many.
func (t *Tracker) FinishedAbove() (spans []Span) {
	floor := t.Floor()
	if int64(t.Pending) < t.Next-floor {
		at := floor // what lies below was looked at
		for first, last := range t.pending() {
			if first > at {
				spans = append(spans, Span{at, first - 1})
			}
			if at = last + 1; len(spans) == maxSpans {
				return spans
			}
		}
		if at < t.Next {
			spans = append(spans, Span{at, t.Next - 1})
		}
	}
	for _, s := range t.earlier {
		if s.First = max(s.First, t.Next); s.First > s.Last {
			continue
		}
		if n := len(spans); n > 0 && spans[n-1].Last == s.First-1 {
			spans[n-1].Last = s.Last
		} else {
			spans = append(spans, s)
		}
	}
	return spans
}

// pending iterates over the runs of pending offsets.
func (t *Tracker) pending() iter.Seq2[int64, int64] {
	return func(yield func(first, last int64) bool) {
		for _, c := range t.chunks {
			for w, word := range c.words {
				for base := c.base + int64(w)<<6; word != 0; {
					from := bits.TrailingZeros64(word)
					n := bits.TrailingZeros64(^(word >> from))
					if !yield(base+int64(from), base+int64(from+n)-1) {
						return
					}
					word &^= mask(n) << from
				}
			}
		}
	}
}

// Commit is a state of the tracker that may be committed.
type Commit struct {
	Floor    int64
	Finished []Span // above the floor
	finished uint64
}

// Commit returns what may be committed now.
func (t *Tracker) Commit() Commit {
	return Commit{t.Floor(), t.FinishedAbove(), t.finished}
}

// Accepted registers that the broker accepted a commit.
func (t *Tracker) Accepted(c Commit) { t.Committed, t.acknowledged = c.Floor, c.finished }

// Dirty reports whether the accepted commit lacks something: the floor lies beyond it, or records
// above the floor were finished since.
func (t *Tracker) Dirty() bool {
	return t.finished != t.acknowledged || t.Floor() > t.Committed
}

// at returns the chunk for offset. Deliveries ascend, so it is the last chunk, or a new one after
// it.
func (t *Tracker) at(offset int64) *chunk {
	base := offset &^ chunkMask
	if n := len(t.chunks); n > 0 && t.chunks[n-1].base == base {
		return t.chunks[n-1]
	}
	c := t.free
	if c == nil {
		c = new(chunk)
	}
	t.free = nil
	c.base = base
	t.chunks = append(t.chunks, c)
	return c
}

// search returns the index of the first chunk that reaches to offset or beyond.
func (t *Tracker) search(offset int64) int {
	return sort.Search(len(t.chunks), func(i int) bool { return t.chunks[i].base+chunkMask >= offset })
}

// trim drops the finished chunks in front. An empty chunk after an unfinished one stays until the
// floor reaches it.
func (t *Tracker) trim() {
	n := 0
	for n < len(t.chunks) && t.chunks[n].count == 0 {
		t.free = t.chunks[n] // its words are all zero again
		n++
	}
	if n > 0 {
		rest := copy(t.chunks, t.chunks[n:])
		clear(t.chunks[rest:])
		t.chunks = t.chunks[:rest]
	}
}

func setRange(words *[chunkBits / 64]uint64, from, n int) {
	for n > 0 {
		w, shift := from>>6, from&63
		take := min(n, 64-shift)
		words[w] |= mask(take) << shift
		from += take
		n -= take
	}
}

func clearRange(words *[chunkBits / 64]uint64, from, n int) (cleared int) {
	for n > 0 {
		w, shift := from>>6, from&63
		take := min(n, 64-shift)
		m := mask(take) << shift
		cleared += bits.OnesCount64(words[w] & m)
		words[w] &^= m
		from += take
		n -= take
	}
	return cleared
}

// mask has its low n bits set, 1 ≤ n ≤ 64.
func mask(n int) uint64 { return ^uint64(0) >> (64 - n) }
