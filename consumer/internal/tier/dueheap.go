package tier

import (
	"cmp"
	"slices"
)

// dueHeap is a heap of a tier's parked records, by due time, then by offset.
type dueHeap []packedRecord

func (h dueHeap) less(i, j int) bool {
	return h[i].due < h[j].due || h[i].due == h[j].due && h[i].offset < h[j].offset
}

// sort sorts the heap. A sorted slice is a heap too.
func (h dueHeap) sort() {
	slices.SortFunc(h, func(a, b packedRecord) int {
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.offset, b.offset))
	})
}

func (h *dueHeap) push(p packedRecord) {
	*h = append(*h, p)
	s := *h
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if !s.less(i, up) {
			break
		}
		s[i], s[up] = s[up], s[i]
		i = up
	}
}

func (h *dueHeap) pop() packedRecord {
	s := *h
	top, n := s[0], len(s)-1
	s[0], s[n] = s[n], packedRecord{}
	s = s[:n]
	*h = s
	for i := 0; ; {
		least := i
		for _, down := range [2]int{2*i + 1, 2*i + 2} {
			if down < n && s.less(down, least) {
				least = down
			}
		}
		if least == i {
			return top
		}
		s[i], s[least] = s[least], s[i]
		i = least
	}
}
