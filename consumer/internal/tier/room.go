package tier

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
