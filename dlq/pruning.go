package dlq

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/offsetset"
)

// pruning collects which letters can be pruned.
type pruning struct {
	judge *judge
	up    limits
	parts map[int32]*prunedPart
}

type prunedPart struct {
	start, until  int64
	stays         bool // until is a letter that has to stay
	letters, open int64
	newest        time.Time // of the open ones
	discarded     int64
	pending       int64
	held          int64
	duplicates    duplicates
}

// duplicates are copies of letters in one partition.
type duplicates struct {
	offsetset.Set
	behind offsetset.Numbers // how far each is after its letter
	epochs int32             // see Entry.Epochs
}

func (p *pruning) add(r *kgo.Record) {
	part := p.parts[r.Partition]
	state := p.judge.state(r)
	copied := p.judge.copy == copyOfResolved
	// A copy of an open letter counts as open: the letter may be old enough to be deleted, and then
	// the copy is all that is left of the record.
	open := p.judge.copy == copyOfOpen || !state.Resolves()
	// A pending letter may be all that is left of the record, if the redriven copy was lost.
	pending := p.judge.ledger.pending(r.Partition, r.Offset)
	if !part.stays && (r.Offset >= part.until || !p.up.take(r, open || pending || copied)) {
		part.stays, part.until = true, min(part.until, r.Offset)
	}
	if part.stays && p.up.take(r, false) {
		part.held++
	}
	switch {
	case part.stays && pending:
		part.pending++
	case part.stays && copied:
		if p.judge.behind > 0 {
			part.duplicates.Add(r.Offset)
			part.duplicates.behind.Set(r.Offset, p.judge.behind)
			part.duplicates.epochs = max(part.duplicates.epochs, r.LeaderEpoch+1)
		}
	case part.stays:
	case open || pending:
		part.open++
		if r.Timestamp.After(part.newest) {
			part.newest = r.Timestamp
		}
		fallthrough
	default:
		part.letters++
		if !open && !copied && state.Discards() {
			part.discarded++
		}
	}
}

func (p *pruning) prunable() *Prunable {
	all := &Prunable{Until: map[int32]int64{}, duplicates: map[int32]*duplicates{}, stays: map[int32]int64{}}
	for i, part := range p.parts {
		all.Pending += part.pending
		all.Held += part.held
		all.Copies += int64(part.duplicates.Len())
		all.duplicates[i] = &part.duplicates
		if part.stays {
			all.stays[i] = part.until
		}
		if part.until <= part.start {
			continue
		}
		all.Until[i] = part.until
		all.Letters += part.letters
		all.Open += part.open
		if part.newest.After(all.NewestOpen) {
			all.NewestOpen = part.newest
		}
		all.Discarded += part.discarded
	}
	return all
}
