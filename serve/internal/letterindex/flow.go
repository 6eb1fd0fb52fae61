package letterindex

import "github.com/sidingkafka/siding/dlq"

// Flow counts what happened under observation: since the index was first complete, or the letter's
// partition was first read to its end. Its numbers never fall, whatever retention deletes, until
// the topic is recreated.
type Flow struct {
	// Written counts by class the letters that came, duplicates not among them.
	Written map[string]int64
	// Outcomes counts the letters whose outcome after a redrive became known.
	Outcomes map[dlq.State]int64
}

// Outcomes are the states that end a redrive of a letter.
var Outcomes = []dlq.State{dlq.Succeeded, dlq.Failed, dlq.Discarded, dlq.Expired, dlq.Unknown, dlq.Unfollowed}

// Flow returns what happened under observation.
func (b *Index) Flow() Flow {
	b.mu.RLock()
	defer b.mu.RUnlock()
	f := Flow{Written: map[string]int64{}, Outcomes: map[dlq.State]int64{}}
	for _, n := range b.kinds.numbers {
		f.Written[b.kinds.all[n].Class] += b.kinds.all[n].came
	}
	for class, came := range b.kinds.gone {
		f.Written[class] += came
	}
	for _, s := range Outcomes {
		f.Outcomes[s] = b.became[stateNumber(s)]
	}
	return f
}

// Came counts the letters of some classes, duplicates not among them, that came under observation:
// see [Flow].
func (b *Index) Came(f *dlq.Filter) (n int64) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	only := dlq.Filter{Classes: f.Classes, Dialects: f.Dialects}
	for i := range b.kinds.all {
		if k := &b.kinds.all[i]; k.came > 0 && only.Selects(k.letter()) {
			n += k.came
		}
	}
	for class, came := range b.kinds.gone {
		if only.Selects((&Kind{Class: class}).letter()) {
			n += came
		}
	}
	return n
}

// came counts a letter that came. The caller holds the lock.
func (b *Index) came(r *row) {
	if !r.copied {
		b.kinds.all[r.kind].came++
	}
	b.turned(0, r.state)
}

// turned counts a letter whose state changed. The caller holds the lock.
func (b *Index) turned(from, to uint8) {
	// Operators discard letters that were not redriven, too: these have no outcome.
	if from == to || states[to] == dlq.Discarded && states[from] != dlq.Redriven {
		return
	}
	b.became[to]++
}
