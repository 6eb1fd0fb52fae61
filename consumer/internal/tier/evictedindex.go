package tier

import (
	"cmp"
	"iter"
	"math"
	"math/bits"
	"slices"
)

// evictedIndex has the offsets of a tier's evicted records and about when they are due, so that
// they can be fetched again in time. The index of a million records must not need the memory that
// their eviction saved. So an offset is one bit, in blocks of 512 consecutive offsets. A block has
// one due time, before which none of its records is due. That suffices: a fetch reads a run of the
// log anyway, and a fetched record has its own due time.
//
// Blocks lie in pages, both in ascending order, and no page or block is empty. In a tier that many
// groups share there may be as many blocks as records. They come in any order, since the records
// that are due last are evicted first. Pages bound the cost of that: inserting or deleting a block
// moves only the blocks of its page.
type evictedIndex struct {
	n     int
	bytes int64 // of the records, packed
	pages []evictedPage
	least int64 // the earliest due time of a block, if known
	known bool
	seen  seenBlock
}

// seenBlock has the due time and the size of each record of one block: the one that a pass went
// over last. So what found no room is fetched alone, once there is some. Another pass over the
// whole block for each of its records would read the block half as often as it has records.
type seenBlock struct {
	base    int64
	whole   bool // the pass has ended, so no record of the block is missing
	records *seenRecords
}

type seenRecords struct {
	due  [evictedBits]int64
	size [evictedBits]int32
}

type seenRecord struct{ offset, due, size int64 }

// set keeps when a record is due, if it belongs to the block.
func (s *seenBlock) set(offset, due, size int64) {
	if s.records != nil && s.base == offset&^evictedMask {
		s.records.due[offset&evictedMask], s.records.size[offset&evictedMask] = due, int32(size)
	}
}

const (
	evictedBits = 512
	evictedMask = evictedBits - 1
	// evictedPageOf is how many blocks a page has at most.
	evictedPageOf = 128
)

// evictedPage is a run of blocks.
type evictedPage struct {
	due    int64 // the earliest of its blocks'
	blocks []evictedBlock
}

// evictedBlock is the set of evicted offsets in [base, base+evictedBits).
type evictedBlock struct {
	base  int64
	due   int64 // Unix milliseconds; none of its records is due earlier
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
	a.seen.set(offset, due, size)
}

// block returns the block at base, which it makes if there is none. It lowers the block's due time
// to due.
func (a *evictedIndex) block(base, due int64) *evictedBlock {
	a.known = a.known && a.least <= due
	p, i := a.search(base)
	if p == len(a.pages) { // after all others: a record that was just read
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

// split divides a page into two.
func (a *evictedIndex) split(p int) {
	page := &a.pages[p]
	behind := evictedPage{blocks: append(make([]evictedBlock, 0, evictedPageOf), page.blocks[evictedPageOf/2:]...)}
	page.blocks = page.blocks[:evictedPageOf/2]
	page.minDue()
	behind.minDue()
	a.pages = slices.Insert(a.pages, p+1, behind)
}

// minDue computes the page's due time.
func (p *evictedPage) minDue() {
	p.due = math.MaxInt64
	for i := range p.blocks {
		p.due = min(p.due, p.blocks[i].due)
	}
}

// remove removes a record that was fetched again, or that retention deleted. Its offset must be in
// the index.
func (a *evictedIndex) remove(offset, size int64) {
	p, i := a.search(offset &^ evictedMask)
	page := &a.pages[p]
	b := &page.blocks[i]
	b.words[(offset&evictedMask)>>6] &^= 1 << (offset & 63)
	a.n--
	a.bytes = max(a.bytes-size, 0)
	if a.n == 0 {
		a.bytes, a.seen = 0, seenBlock{}
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

// has reports whether a record of the offset's block is in the index.
func (a *evictedIndex) has(offset int64) bool {
	p, i := a.search(offset &^ evictedMask)
	return p < len(a.pages) && a.pages[p].blocks[i].base == offset&^evictedMask
}

// each returns the average size of a record, in bytes.
func (a *evictedIndex) each() int64 { return a.bytes / int64(max(a.n, 1)) }

// next returns the first offset that is not lower than from.
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

// first returns the block that is due first, nil if there is none.
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

// due returns a time before which no record is due, in Unix milliseconds; MaxInt64 if there is
// none.
func (a *evictedIndex) due() int64 {
	if !a.known {
		a.known, a.least = true, math.MaxInt64
		for i := range a.pages {
			a.least = min(a.least, a.pages[i].due)
		}
	}
	return a.least
}

// run returns roughly how many bytes lie in the consecutive blocks from base on that are due by a
// time.
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

// visit begins a pass over a block, which must exist, and returns the block's due time. Until
// leave, the block has only the due times of the records that are added meanwhile.
func (a *evictedIndex) visit(base int64) (due int64) {
	p, i := a.search(base)
	b := &a.pages[p].blocks[i]
	due, b.due, a.known = b.due, math.MaxInt64, false
	a.pages[p].minDue()
	if a.seen.records == nil {
		a.seen.records = new(seenRecords)
	}
	if !a.seen.whole || a.seen.base != base {
		a.seen.base, a.seen.whole = base, false
	}
	return due
}

// leave ends a pass. due is the earliest due time of the records that the pass saw and left
// evicted. whole reports that it saw all, or that all were seen before.
func (a *evictedIndex) leave(base, due int64, whole bool) {
	a.seen.whole = whole && a.seen.records != nil && a.seen.base == base
	for _, r := range a.sorted(base) {
		due = min(due, r.due)
	}
	if a.has(base) {
		a.block(base, due)
	}
}

// sorted returns the records of a block by due time, nil if the index does not know them.
func (a *evictedIndex) sorted(base int64) (records []seenRecord) {
	if !a.seen.whole || a.seen.base != base {
		return nil
	}
	for at, ok := a.next(base); ok && at < base+evictedBits; at, ok = a.next(at + 1) {
		i := at & evictedMask
		records = append(records, seenRecord{at, a.seen.records.due[i], int64(a.seen.records.size[i])})
	}
	slices.SortFunc(records, func(a, b seenRecord) int {
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.offset, b.offset))
	})
	return records
}

// fitting returns the records of a block that are due by a time and find room, by offset. It
// returns nil if they are not known, or most of the block: a pass over all of it costs fewer
// requests.
func (a *evictedIndex) fitting(block, room, by int64) (only []seenRecord) {
	var bytes, all int64
	for _, r := range a.sorted(block) {
		all += r.size
		if r.due <= by && bytes+r.size <= room || len(only) == 0 {
			bytes += r.size
			only = append(only, r)
		}
	}
	if bytes > all/2 {
		return nil
	}
	slices.SortFunc(only, func(a, b seenRecord) int { return cmp.Compare(a.offset, b.offset) })
	return only
}

// from returns the blocks whose base is not lower than base, in order.
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

// search finds the first block whose base is not lower than base: its page, and its place in the
// page. If there is none, page is the number of pages.
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

// room is how much a tier may fetch again. Sizes are in bytes.
type room struct {
	bytes  int64
	over   int64 // how much the tier holds beyond its share
	enough int64 // less is not worth a fetch: a block would be fetched once for each of its records
	freed  int64 // for waitForRoom, if the room does not suffice
}

// suffices reports whether there is room for what the next pass would fetch first, and for enough
// of the want bytes to be worth a pass.
func (r room) suffices(evicted *evictedIndex, want int64) bool {
	if b := evicted.first(); b != nil {
		if known := evicted.sorted(b.base); known != nil {
			return r.bytes >= known[0].size
		}
	}
	return r.bytes >= evicted.each() && r.bytes >= min(r.enough, want)
}
