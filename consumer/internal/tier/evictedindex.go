package tier

import (
	"cmp"
	"iter"
	"math"
	"math/bits"
	"slices"
)

// evictedIndex knows the evicted records of a tier, their offsets and due times, so that they can
// be fetched again in time. A million of them must not need the memory that was saved by evicting
// them. So an offset is one bit, in blocks of 512 consecutive ones, and a block knows when the
// first of its records is due at the earliest: what is fetched again is a run of the log anyway,
// and a record says when it is due once it was fetched.
//
// Blocks lie in pages, both in ascending order, and no page or block is empty. In a tier that many
// groups share there may be as many blocks as records. They come in any order, since those that are
// due last are evicted first. So a change of a block moves the blocks of its page, and no others.
type evictedIndex struct {
	n     int
	bytes int64 // of the records, packed
	pages []evictedPage
	least int64 // due time of the block that is due first, if known
	known bool
}

const (
	evictedBits = 512
	evictedMask = evictedBits - 1
	// evictedPageOf is how many blocks a page has at most.
	evictedPageOf = 128
)

// evictedPage is a run of blocks.
type evictedPage struct {
	due    int64 // of the block that is due first
	blocks []evictedBlock
}

// evictedBlock has the offsets in [base, base+evictedBits).
type evictedBlock struct {
	base  int64
	due   int64 // Unix milliseconds; none of its records is due before
	n     int
	words [evictedBits / 64]uint64
}

// add adds a record.
func (a *evictedIndex) add(offset, due, size int64) {
	b := a.block(offset&^evictedMask, due)
	at, bit := (offset&evictedMask)>>6, uint64(1)<<(offset&63)
	if b.words[at]&bit != 0 {
		return
	}
	b.words[at] |= bit
	b.n++
	a.n++
	a.bytes += size
}

// block returns a block. It makes it if need be, and has it be due no later than due.
func (a *evictedIndex) block(base, due int64) *evictedBlock {
	a.known = a.known && a.least <= due
	p, i := a.search(base)
	if p == len(a.pages) { // behind all others, like a record that was just read
		if p == 0 || len(a.pages[p-1].blocks) == evictedPageOf {
			a.pages = append(a.pages, evictedPage{due: due})
		} else {
			p--
		}
		i = len(a.pages[p].blocks)
	}
	page := &a.pages[p]
	if i == len(page.blocks) || page.blocks[i].base != base {
		if len(page.blocks) == evictedPageOf {
			a.split(p)
			return a.block(base, due)
		}
		page.blocks = slices.Insert(page.blocks, i, evictedBlock{base: base, due: due})
	}
	b := &page.blocks[i]
	b.due, page.due = min(b.due, due), min(page.due, due)
	return b
}

// split makes two pages of one.
func (a *evictedIndex) split(p int) {
	page := &a.pages[p]
	behind := evictedPage{blocks: append(make([]evictedBlock, 0, evictedPageOf), page.blocks[evictedPageOf/2:]...)}
	page.blocks = page.blocks[:evictedPageOf/2]
	page.minDue()
	behind.minDue()
	a.pages = slices.Insert(a.pages, p+1, behind)
}

// minDue computes when the page is due.
func (p *evictedPage) minDue() {
	p.due = math.MaxInt64
	for i := range p.blocks {
		p.due = min(p.due, p.blocks[i].due)
	}
}

// remove removes a record that was fetched again, or that the log has no more. Its offset must be
// in the index.
func (a *evictedIndex) remove(offset, size int64) {
	p, i := a.search(offset &^ evictedMask)
	page := &a.pages[p]
	b := &page.blocks[i]
	b.words[(offset&evictedMask)>>6] &^= 1 << (offset & 63)
	a.n--
	a.bytes = max(a.bytes-size, 0)
	if a.n == 0 {
		a.bytes = 0
	}
	if b.n--; b.n > 0 {
		return
	}
	a.known = false
	if page.blocks = slices.Delete(page.blocks, i, i+1); len(page.blocks) > 0 {
		page.minDue()
	} else {
		a.pages = slices.Delete(a.pages, p, p+1)
	}
}

// each is the size of a record, on average.
func (a *evictedIndex) each() int64 { return a.bytes / int64(max(a.n, 1)) }

// next is the first offset at from or behind it.
func (a *evictedIndex) next(from int64) (offset int64, ok bool) {
	for b := range a.from(from &^ evictedMask) {
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

// first is the block that is due first, nil if there is none.
func (a *evictedIndex) first() (b *evictedBlock) {
	var page *evictedPage
	for i := range a.pages {
		if page == nil || a.pages[i].due < page.due {
			page = &a.pages[i]
		}
	}
	if page == nil {
		return nil
	}
	for i := range page.blocks {
		if b == nil || page.blocks[i].due < b.due {
			b = &page.blocks[i]
		}
	}
	return b
}

// due is when the first record is due, at the earliest.
func (a *evictedIndex) due() int64 {
	if !a.known {
		a.known, a.least = true, math.MaxInt64
		for i := range a.pages {
			a.least = min(a.least, a.pages[i].due)
		}
	}
	return a.least
}

// run is about how many bytes lie in consecutive blocks, from base on, that are due by a time.
func (a *evictedIndex) run(base, by int64) (bytes int64) {
	for b := range a.from(base) {
		if b.base != base || b.due > by {
			break
		}
		bytes += int64(b.n) * a.each()
		base += evictedBits
	}
	return bytes
}

// visit begins a pass over a block, which must be there, and returns when the block was due. A
// record that is added to the block during the pass counts by its own due time.
func (a *evictedIndex) visit(base int64) (due int64) {
	p, i := a.search(base)
	b := &a.pages[p].blocks[i]
	due, b.due, a.known = b.due, math.MaxInt64, false
	a.pages[p].minDue()
	return due
}

// leave ends a pass. due is when the first of the records is due that the pass saw and left there.
func (a *evictedIndex) leave(base, due int64) {
	if p, i := a.search(base); p < len(a.pages) && a.pages[p].blocks[i].base == base {
		a.block(base, due)
	}
}

// from are the blocks at base and behind it, in order.
func (a *evictedIndex) from(base int64) iter.Seq[*evictedBlock] {
	return func(yield func(*evictedBlock) bool) {
		for p, i := a.search(base); p < len(a.pages); p, i = p+1, 0 {
			for blocks := a.pages[p].blocks; i < len(blocks); i++ {
				if !yield(&blocks[i]) {
					return
				}
			}
		}
	}
}

// search finds the first block at base or behind it: its page, or the number of pages if there is
// none, and its place in the page.
func (a *evictedIndex) search(base int64) (page, at int) {
	page, _ = slices.BinarySearchFunc(a.pages, base, func(p evictedPage, base int64) int {
		return compareBase(p.blocks[len(p.blocks)-1], base)
	})
	if page < len(a.pages) {
		at, _ = slices.BinarySearchFunc(a.pages[page].blocks, base, compareBase)
	}
	return page, at
}

func compareBase(b evictedBlock, base int64) int { return cmp.Compare(b.base, base) }
