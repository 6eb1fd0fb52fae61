package offsets

import (
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

// Deliver notes that the record at offset was handed out. Offsets must ascend. Deliver returns
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

// Skip notes that the reader passed over all records below offset that were not delivered.
func (t *Tracker) Skip(offset int64) {
	t.Next = max(t.Next, offset)
}

// Finish notes that the record at offset is finished. It changes nothing if the record is not
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
	t.Pending -= finished
	t.trim()
	return finished
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

// Dirty reports whether the floor lies beyond what is committed.
func (t *Tracker) Dirty() bool { return t.Floor() > t.Committed }

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
