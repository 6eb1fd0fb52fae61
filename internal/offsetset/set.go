// Package offsetset has sets of offsets of one partition, small enough for millions of records.
//
// A set is cut into blocks of 65,536 offsets. A block with few offsets is a sorted list of 16-bit
// numbers, one with many is a bitmap. So an offset takes two bytes at most, and about a bit in
// dense sets. The structure is a roaring bitmap (Chambi, Lemire, Kaser, Godin: Better bitmap
// performance with Roaring bitmaps, 2016), reduced to what offsets need.
package offsetset

import (
	"encoding/binary"
	"errors"
	"iter"
	"math"
	"math/bits"
	"slices"
	"sort"
)

const (
	blockBits = 16
	blockSize = 1 << blockBits
	// listLimit is the length of the longest list; more offsets take less memory as a bitmap.
	listLimit = blockSize / 16
)

// Set is a set of offsets, which must not be negative. The zero value is empty. It is not safe for
// concurrent use.
type Set struct {
	blocks []block // by their first offset
	gaps   int     // empty blocks
	n      int
}

// block is a part of a set: a list or a bitmap. It is small, since a sparse set has many blocks.
type block struct {
	high int64
	list []uint16
	bits *[blockSize / 64]uint64
	n    int // offsets in bits
}

// Len returns the number of offsets in the set.
func (s *Set) Len() int { return s.n }

// Add adds an offset to the set, and reports whether it is new.
func (s *Set) Add(offset int64) bool {
	i, ok := s.find(offset >> blockBits)
	if !ok {
		// The previous block is probably complete, and its spare room is not needed.
		if n := len(s.blocks); i == n && n > 0 {
			s.blocks[n-1].list = slices.Clone(s.blocks[n-1].list)
		}
		s.blocks = slices.Insert(s.blocks, i, block{high: offset >> blockBits})
	} else if s.blocks[i].empty() {
		s.gaps--
	}
	if !s.blocks[i].add(uint16(offset)) {
		return false
	}
	s.n++
	return true
}

// Has reports whether an offset is in the set.
func (s *Set) Has(offset int64) bool {
	i, ok := s.find(offset >> blockBits)
	return ok && s.blocks[i].has(uint16(offset))
}

// Remove removes an offset from the set, and reports whether it was there.
func (s *Set) Remove(offset int64) bool {
	i, ok := s.find(offset >> blockBits)
	if !ok || !s.blocks[i].remove(uint16(offset)) {
		return false
	}
	s.n--
	if b := &s.blocks[i]; b.empty() {
		b.list, b.bits = nil, nil
		// Empty blocks are removed in bulk: removing each would be slow if blocks are many.
		if s.gaps++; s.gaps > len(s.blocks)/2 {
			s.blocks = slices.Clone(slices.DeleteFunc(s.blocks, func(b block) bool { return b.empty() }))
			s.gaps = 0
		}
	}
	return true
}

// find returns the index of a block, or where to insert it. Offsets mostly ascend, so the last
// block is checked first.
func (s *Set) find(high int64) (int, bool) {
	n := len(s.blocks)
	if n > 0 && s.blocks[n-1].high <= high {
		if s.blocks[n-1].high == high {
			return n - 1, true
		}
		return n, false
	}
	i := sort.Search(n, func(i int) bool { return s.blocks[i].high >= high })
	return i, i < n && s.blocks[i].high == high
}

// All yields the offsets in ascending order. The set must not change meanwhile.
func (s *Set) All() iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for i := range s.blocks {
			for low := range s.blocks[i].all() {
				if !yield(s.blocks[i].high<<blockBits | int64(low)) {
					return
				}
			}
		}
	}
}

// Min is the least offset, if there is one.
func (s *Set) Min() (int64, bool) {
	for offset := range s.All() {
		return offset, true
	}
	return 0, false
}

func (b *block) empty() bool { return len(b.list) == 0 && b.n == 0 }

// Max is the greatest offset, if there is one.
func (s *Set) Max() (greatest int64, ok bool) {
	for i := len(s.blocks) - 1; i >= 0; i-- {
		for low := range s.blocks[i].all() {
			greatest, ok = s.blocks[i].high<<blockBits|int64(low), true
		}
		if ok {
			return greatest, true
		}
	}
	return 0, false
}

func (b *block) has(low uint16) bool {
	if b.bits != nil {
		return b.bits[low/64]&(1<<(low%64)) != 0
	}
	_, ok := slices.BinarySearch(b.list, low)
	return ok
}

func (b *block) add(low uint16) bool {
	if b.bits == nil && len(b.list) == listLimit && !b.has(low) {
		b.bits, b.n = new([blockSize / 64]uint64), len(b.list)
		for _, l := range b.list {
			b.bits[l/64] |= 1 << (l % 64)
		}
		b.list = nil
	}
	if b.bits != nil {
		was := b.bits[low/64]
		b.bits[low/64] |= 1 << (low % 64)
		if was == b.bits[low/64] {
			return false
		}
		b.n++
		return true
	}
	if n := len(b.list); n == 0 || b.list[n-1] < low {
		b.list = append(b.list, low)
		return true
	}
	i, ok := slices.BinarySearch(b.list, low)
	if !ok {
		b.list = slices.Insert(b.list, i, low)
	}
	return !ok
}

func (b *block) remove(low uint16) bool {
	if b.bits != nil {
		was := b.bits[low/64]
		b.bits[low/64] &^= 1 << (low % 64)
		if was == b.bits[low/64] {
			return false
		}
		b.n--
		return true
	}
	i, ok := slices.BinarySearch(b.list, low)
	if ok {
		b.list = slices.Delete(b.list, i, i+1)
	}
	return ok
}

func (b *block) all() iter.Seq[uint16] {
	return func(yield func(uint16) bool) {
		for _, low := range b.list {
			if !yield(low) {
				return
			}
		}
		if b.bits == nil {
			return
		}
		for i, word := range b.bits {
			for ; word != 0; word &= word - 1 {
				if !yield(uint16(i*64 + bits.TrailingZeros64(word))) {
					return
				}
			}
		}
	}
}

// errSyntax means that the bytes are no set.
var errSyntax = errors.New("offsetset: not a set: its offsets do not ascend, or it ends in the middle of one")

// Append appends the offsets' binary form: the distance of each from its predecessor, as unsigned
// varints. In a dense set an offset takes one byte.
func Append(b []byte, offsets iter.Seq[int64]) []byte {
	last := int64(-1)
	for offset := range offsets {
		b = binary.AppendUvarint(b, uint64(offset-last-1))
		last = offset
	}
	return b
}

// Parse adds the offsets that Append wrote. On an error the set has the offsets before it.
func (s *Set) Parse(b []byte) error {
	for last := int64(-1); len(b) > 0; {
		distance, n := binary.Uvarint(b)
		if n <= 0 || last == math.MaxInt64 || distance > uint64(math.MaxInt64-(last+1)) {
			return errSyntax
		}
		last += int64(distance) + 1
		s.Add(last)
		b = b[n:]
	}
	return nil
}
