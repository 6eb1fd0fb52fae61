package consumer

import (
	"math"
	"math/bits"
	"slices"
)

// awayIndex knows the records of a tier that gave up their bytes: offset and due time, so that they can be fetched again in
// time. A million of them must not need what was saved by giving them up. So an offset is one bit, in blocks of 512
// consecutive ones, and a block knows when the first of its records is due at the earliest: what is fetched again is a run of
// the log anyway, and a copy tells its own due time when it is here.
type awayIndex struct {
	n      int
	bytes  int64 // that the records took
	blocks []awayBlock
	least  int64 // due time of the block that is due first, where known
	known  bool
}

const (
	awayBits = 512
	awayMask = awayBits - 1
)

// awayBlock has the offsets in [base, base+awayBits).
type awayBlock struct {
	base  int64
	due   int64 // Unix milliseconds; none of its records is due before
	n     int
	words [awayBits / 64]uint64
}

// add takes a record in.
func (a *awayIndex) add(offset, due, size int64) {
	base := offset &^ awayMask
	i := a.search(base)
	if i == len(a.blocks) || a.blocks[i].base != base {
		a.blocks = slices.Insert(a.blocks, i, awayBlock{base: base, due: due})
	}
	b := &a.blocks[i]
	at, bit := (offset&awayMask)>>6, uint64(1)<<(offset&63)
	if b.words[at]&bit != 0 {
		return
	}
	b.words[at] |= bit
	b.n++
	b.due = min(b.due, due)
	a.known = a.known && a.least <= due
	a.n++
	a.bytes += size
}

// remove takes a record out that is back, or gone; the offset must be in the index. A block that becomes empty stays until leave.
func (a *awayIndex) remove(offset, size int64) {
	b := &a.blocks[a.search(offset&^awayMask)]
	b.words[(offset&awayMask)>>6] &^= 1 << (offset & 63)
	b.n--
	a.n--
	a.bytes = max(a.bytes-size, 0)
	if a.n == 0 {
		a.bytes = 0
	}
}

// each is the bytes of a record, on average.
func (a *awayIndex) each() int64 { return a.bytes / int64(max(a.n, 1)) }

// next is the first offset at from or behind it.
func (a *awayIndex) next(from int64) (offset int64, ok bool) {
	for i := a.search(from &^ awayMask); i < len(a.blocks); i++ {
		b := &a.blocks[i]
		start := max(from-b.base, 0)
		for w := start >> 6; w < int64(len(b.words)); w++ {
			word := b.words[w]
			if w == start>>6 {
				word &= ^uint64(0) << (start & 63)
			}
			if word != 0 {
				return b.base + w<<6 + int64(bits.TrailingZeros64(word)), true
			}
		}
	}
	return 0, false
}

// first is the block that is due first, nil where there is none.
func (a *awayIndex) first() (b *awayBlock) {
	for i := range a.blocks {
		if b == nil || a.blocks[i].due < b.due {
			b = &a.blocks[i]
		}
	}
	return b
}

// due is when the first record is due, at the earliest.
func (a *awayIndex) due() int64 {
	if !a.known {
		a.known, a.least = true, math.MaxInt64
		if b := a.first(); b != nil {
			a.least = b.due
		}
	}
	return a.least
}

// run is about how many bytes there are from a block on, in blocks one behind the other that are due by then.
func (a *awayIndex) run(base, by int64) (bytes int64) {
	for i := a.search(base); i < len(a.blocks); i++ {
		b := &a.blocks[i]
		if b.base != base || b.due > by {
			break
		}
		bytes += int64(b.n) * a.each()
		base += awayBits
	}
	return bytes
}

// visit begins a pass over a block: what is added to it from now on, in front of the pass or behind it, says by itself when it is due. It
// returns when the block was due.
func (a *awayIndex) visit(base int64) (due int64) {
	b := &a.blocks[a.search(base)]
	due, b.due, a.known = b.due, math.MaxInt64, false
	return due
}

// leave ends a pass: due is when the first of the records is due that it saw and left. Blocks that are empty are dropped.
func (a *awayIndex) leave(base, due int64) {
	if i := a.search(base); i < len(a.blocks) && a.blocks[i].base == base {
		a.blocks[i].due = min(a.blocks[i].due, due)
	}
	a.known = false
	a.blocks = slices.DeleteFunc(a.blocks, func(b awayBlock) bool { return b.n == 0 })
}

// search finds the first block at base or behind it.
func (a *awayIndex) search(base int64) int {
	i, _ := slices.BinarySearchFunc(a.blocks, base, func(b awayBlock, base int64) int {
		switch {
		case b.base < base:
			return -1
		case b.base > base:
			return 1
		}
		return 0
	})
	return i
}
