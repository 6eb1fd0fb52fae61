package letterindex

import (
	"cmp"
	"math"
	"slices"
)

// row is what the index keeps of a letter.
type row struct {
	offset          int64
	failed, entered int64 // Unix milliseconds
	kind            uint32
	state           uint8 // index of states
	copied          bool  // of an earlier letter, without an entry of its own
}

// rows are the letters of one partition, in the order of their offsets. A row takes 16 bytes.
// Tallies by chunk spare most counts a look at each row.
type rows struct {
	chunks []*rowChunk
	n      int
}

// rowChunk has rows that follow each other, with offsets and times beside those of the chunk.
type rowChunk struct {
	offset, entered int64
	packed          []packed
	tallies         []tally
	various         bool // it has no tallies
}

// chunkRows bounds the rows of a chunk, so that few are copied when the oldest are dropped, and
// little memory is left over at the end.
const chunkRows = 4096

// packed is a row within a chunk.
type packed struct {
	offset  uint32
	entered int32
	// rest has, from the highest bit on, when the letter failed, its kind, its state, and whether
	// it is copied.
	rest uint64
}

// The bits of packed.rest. Times reach to the year 2527.
const (
	stateShift  = 1
	kindShift   = stateShift + 4
	failedShift = kindShift + kindBits
	kindBits    = 15
	mostFailed  = 1<<(64-failedShift) - 1
)

// row returns the i-th row of the chunk.
func (c *rowChunk) row(i int) row {
	p := &c.packed[i]
	return row{
		offset: c.offset + int64(p.offset), entered: c.entered + int64(p.entered), failed: int64(p.rest >> failedShift),
		kind: uint32(p.rest>>kindShift) & (1<<kindBits - 1), state: uint8(p.rest>>stateShift) & 15, copied: p.rest&1 == 1,
	}
}

// setState changes the state of the i-th row. The caller recounts the chunk.
func (c *rowChunk) setState(i int, state uint8) {
	p := &c.packed[i]
	p.rest = p.rest&^(15<<stateShift) | uint64(state)<<stateShift
}

// hasRoom reports whether the chunk can take a row.
func (c *rowChunk) hasRoom(r *row) bool {
	return len(c.packed) < chunkRows && r.offset-c.offset <= math.MaxUint32 && max(r.entered-c.entered, c.entered-r.entered) <= math.MaxInt32
}

// add adds a row, whose offset is beyond all others.
func (r *rows) add(is *row) {
	if len(r.chunks) == 0 || !r.chunks[len(r.chunks)-1].hasRoom(is) {
		r.chunks = append(r.chunks, &rowChunk{offset: is.offset, entered: is.entered})
	}
	c := r.chunks[len(r.chunks)-1]
	rest := uint64(min(max(is.failed, 0), mostFailed))<<failedShift | uint64(is.kind)<<kindShift | uint64(is.state)<<stateShift
	if is.copied {
		rest |= 1
	}
	c.packed = append(c.packed, packed{offset: uint32(is.offset - c.offset), entered: int32(is.entered - c.entered), rest: rest})
	c.count(is)
	r.n++
}

// find returns where the first row at an offset or beyond is, and whether it is of that offset. If
// there is none, the chunk is one that does not exist.
func (r *rows) find(offset int64) (chunk, i int, found bool) {
	chunk, found = slices.BinarySearchFunc(r.chunks, offset, func(c *rowChunk, at int64) int { return cmp.Compare(c.row(0).offset, at) })
	if found || chunk == 0 {
		return chunk, 0, found
	}
	c := r.chunks[chunk-1]
	i, found = slices.BinarySearchFunc(c.packed, offset, func(p packed, at int64) int { return cmp.Compare(c.offset+int64(p.offset), at) })
	if i == len(c.packed) {
		return chunk, 0, false
	}
	return chunk - 1, i, found
}

// drop drops the rows before an offset, and returns how many these were.
func (r *rows) drop(offset int64) (n int) {
	first, i, _ := r.find(offset)
	for _, c := range r.chunks[:first] {
		n += len(c.packed)
	}
	r.chunks = slices.Delete(r.chunks, 0, first)
	if i > 0 {
		c := r.chunks[0]
		c.packed = slices.Clone(c.packed[i:])
		c.recount()
		n += i
	}
	r.n -= n
	return n
}

// cut drops the rows at an offset and beyond, and returns how many these were.
func (r *rows) cut(offset int64) (n int) {
	last, i, _ := r.find(offset)
	for _, c := range r.chunks[last:] {
		n += len(c.packed)
	}
	if i > 0 {
		c := r.chunks[last]
		c.packed = slices.Clone(c.packed[:i])
		c.recount()
		n -= i
		last++
	}
	r.chunks = slices.Delete(r.chunks, last, len(r.chunks))
	r.n -= n
	return n
}

// all yields all rows, the oldest first.
func (r *rows) all(yield func(row) bool) { r.from(math.MinInt64)(yield) }

// from yields the rows at an offset and beyond, the oldest first.
func (r *rows) from(offset int64) func(yield func(row) bool) {
	return func(yield func(row) bool) {
		first, i, _ := r.find(offset)
		for _, c := range r.chunks[first:] {
			for ; i < len(c.packed); i++ {
				if !yield(c.row(i)) {
					return
				}
			}
			i = 0
		}
	}
}

// before yields the rows before an offset, the newest first, without those of chunks that are
// passed over.
func (r *rows) before(offset int64, passes func(*rowChunk) bool) func(yield func(row) bool) {
	return func(yield func(row) bool) {
		last, end, _ := r.find(offset)
		for n := min(last, len(r.chunks)-1); n >= 0; n-- {
			c := r.chunks[n]
			if n < last {
				end = len(c.packed)
			}
			if passes != nil && passes(c) {
				continue
			}
			for i := end - 1; i >= 0; i-- {
				if !yield(c.row(i)) {
					return
				}
			}
		}
	}
}
