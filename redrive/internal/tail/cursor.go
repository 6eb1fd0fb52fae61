package tail

import (
	"slices"
)

// cursor is how far a partition was read.
type cursor struct {
	at    int64
	own   []extent // ahead of it, what the run wrote
	limit int32    // bytes to ask for
	stuck int64    // where an answer had nothing, though there is something; -1
}

// pass moves past the records of the run.
func (p *cursor) pass() {
	if len(p.own) == 0 {
		return
	}
	if len(p.own) > 1 { // those of two transactions that were written at the same time
		slices.SortFunc(p.own, func(a, b extent) int { return int(min(max(a.from-b.from, -1), 1)) })
	}
	i := 0
	for ; i < len(p.own) && p.own[i].from <= p.at; i++ {
		p.at = max(p.at, p.own[i].until)
	}
	p.own = slices.Delete(p.own, 0, i)
}

// ask moves the cursor, and decides how many bytes are asked for the next time.
func (p *cursor) ask(at int64, others bool, end int64) {
	nothing := at <= p.at && p.at < end
	p.at = max(p.at, at)
	switch {
	// a batch that is larger than the limit, and not one of the run's that will be passed over
	case nothing && p.stuck == p.at:
		p.limit = min(max(tailFill, p.limit*4), tailMost)
	case others:
		p.limit = max(p.limit, tailFill)
	case !nothing:
		p.limit = tailGlance
	}
	p.stuck = -1
	if nothing {
		p.stuck = p.at
	}
}

// extent is a range of offsets.
type extent struct{ from, until int64 }
