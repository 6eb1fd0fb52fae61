package offsetset

import (
	"slices"
	"sort"
)

// Numbers maps each offset of a set to a number; the set says which offsets have one. Neighbors
// with the same number share one entry of six bytes. The zero value is empty. It is not safe for
// concurrent use.
type Numbers struct {
	blocks []numberBlock // by their first offset
}

// numberBlock has the numbers of 65,536 offsets. The number is[i] counts from the offset from[i] up
// to the next one.
type numberBlock struct {
	high int64
	from []uint16
	is   []uint32
	max  uint16 // the greatest offset that was set
}

// Set stores the number of an offset.
func (n *Numbers) Set(offset int64, number uint32) {
	high := offset >> blockBits
	i, ok := n.find(high)
	if !ok {
		if i == len(n.blocks) && i > 0 { // the previous block is probably complete
			b := &n.blocks[i-1]
			b.from, b.is = slices.Clone(b.from), slices.Clone(b.is)
		}
		n.blocks = slices.Insert(n.blocks, i, numberBlock{high: high})
	}
	n.blocks[i].set(uint16(offset), number)
}

// Of returns the number of an offset that was set. For other offsets the result is undefined.
func (n *Numbers) Of(offset int64) uint32 {
	i, ok := n.find(offset >> blockBits)
	if !ok {
		return 0
	}
	b := &n.blocks[i]
	if at := b.at(uint16(offset)); at >= 0 {
		return b.is[at]
	}
	return 0
}

// find returns the index of a block, or where to insert it. Offsets mostly ascend, so the last
// block is checked first.
func (n *Numbers) find(high int64) (int, bool) {
	last := len(n.blocks) - 1
	if last >= 0 && n.blocks[last].high <= high {
		if n.blocks[last].high == high {
			return last, true
		}
		return last + 1, false
	}
	i := sort.Search(last+1, func(i int) bool { return n.blocks[i].high >= high })
	return i, i <= last && n.blocks[i].high == high
}

// at returns the index of the number that counts for an offset, or -1.
func (b *numberBlock) at(low uint16) int {
	if last := len(b.from) - 1; last >= 0 && b.from[last] <= low {
		return last
	}
	i, ok := slices.BinarySearch(b.from, low)
	if !ok {
		i--
	}
	return i
}

func (b *numberBlock) set(low uint16, number uint32) {
	i := b.at(low)
	if i >= 0 && b.is[i] == number {
		b.max = max(b.max, low)
		return
	}
	// The offsets after this one keep their number.
	if i >= 0 && low < b.max && (i+1 == len(b.from) || b.from[i+1] > low+1) {
		b.insert(i+1, low+1, b.is[i])
	}
	if i >= 0 && b.from[i] == low {
		b.is[i] = number
	} else {
		i++
		b.insert(i, low, number)
	}
	if next := i + 1; next < len(b.from) && b.is[next] == number && b.from[next] == low+1 {
		b.remove(next)
	}
	if i > 0 && b.is[i-1] == number {
		b.remove(i)
	}
	b.max = max(b.max, low)
}

func (b *numberBlock) insert(i int, low uint16, number uint32) {
	b.from, b.is = slices.Insert(b.from, i, low), slices.Insert(b.is, i, number)
}

func (b *numberBlock) remove(i int) {
	b.from, b.is = slices.Delete(b.from, i, i+1), slices.Delete(b.is, i, i+1)
}
