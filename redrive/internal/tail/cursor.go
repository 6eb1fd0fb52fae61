package tail

import (
	"slices"
)

// cursor is the read position of a partition.
type cursor struct {
	at    int64
	own   []extent // offsets of the run's records from at on
	limit int32    // bytes to fetch
	stuck int64    // position at which an answer had no whole batch although records follow; -1
}

// pass moves past the records of the run.
func (p *cursor) pass() {
	if len(p.own) == 0 {
		return
	}
	if len(p.own) > 1 { // two transactions may be written at the same time
		slices.SortFunc(p.own, func(a, b extent) int { return int(min(max(a.from-b.from, -1), 1)) })
	}
	i := 0
	for ; i < len(p.own) && p.own[i].from <= p.at; i++ {
		p.at = max(p.at, p.own[i].until)
	}
	p.own = slices.Delete(p.own, 0, i)
}

// ask moves the cursor, and sets the bytes of the next fetch.
func (p *cursor) ask(at int64, others bool, end int64) {
	nothing := at <= p.at && p.at < end
	p.at = max(p.at, at)
	switch {
	// the next batch is larger than the limit; the run's own batches would have been skipped by now
	case nothing && p.stuck == p.at:
		p.limit = min(max(fillBytes, p.limit*4), maxBytes)
	case others:
		p.limit = max(p.limit, fillBytes)
	case !nothing:
		p.limit = headBytes
	}
	p.stuck = -1
	if nothing {
		p.stuck = p.at
	}
}

// extent is a range of offsets.
type extent struct{ from, until int64 }
