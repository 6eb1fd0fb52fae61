package tier

// pass is one fetch of a block's records.
type pass struct {
	block int64
	due   int64 // the block's due time before the pass
	want  int64 // about how many bytes to fetch at a time
	// only has the records to fetch, by offset, if not the whole block
	only []seenRecord
}

// next returns where the pass goes on, and how many bytes it fetches there.
func (p *pass) next(evicted *evictedIndex, at int64) (from, want int64, ok bool) {
	if p.only == nil {
		from, ok = evicted.next(at)
		return from, p.want, ok && from < p.block+evictedBits
	}
	for len(p.only) > 0 {
		first := p.only[0]
		if in, _ := evicted.next(first.offset); first.offset < at || in != first.offset { // it came
			p.only = p.only[1:]
			continue
		}
		for i := int64(0); len(p.only) > 0 && p.only[0].offset == first.offset+i; i++ {
			want += p.only[0].size
			p.only = p.only[1:]
		}
		return first.offset, want, true
	}
	return 0, 0, false
}
