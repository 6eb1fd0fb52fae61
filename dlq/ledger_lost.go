package dlq

// Drops the states of letters that the brokers lost.

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// lostTimeout bounds a question of dropLost. Without an answer the next Read asks again.
const lostTimeout = 5 * time.Second

// dropLost drops the states of letters that the brokers lost, as in an unclean election, and whose
// offsets other letters may have. Leader epochs and offsets grow together, and the brokers know
// where each epoch ends in their log: a letter is lost if its offset is behind the end of the
// epochs that its entry names (KIP-101). Only a new leader can have lost a letter, so there is
// nothing to ask as a rule.
func (l *Ledger) dropLost(ctx context.Context, cl *kgo.Client) {
	l.cuts = map[int32]int64{}
	todo := map[int32][]int32{}
	for p, now := range l.epochs {
		f := l.stateCodeOf(p)
		for epochs := range f.last {
			if _, known := f.ends[epochs]; !known && epochs < now {
				todo[p] = append(todo[p], epochs)
			}
		}
		was, ok := l.checked[p]
		if !ok {
			l.checked[p] = now
		} else if was < now && !slices.Contains(todo[p], was) {
			todo[p] = append(todo[p], was)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, lostTimeout)
	defer cancel()
	for len(todo) > 0 {
		ask := kadm.OffsetForLeaderEpochRequest{}
		asked := map[int32]int32{}
		for p, all := range todo {
			last := len(all) - 1
			asked[p], todo[p] = all[last], all[:last]
			ask.Add(l.topic, p, asked[p]-1)
			if last == 0 {
				delete(todo, p)
			}
		}
		answers, err := kadm.NewClient(cl).OffsetForLeaderEpoch(ctx, ask)
		for p, a := range answers[l.topic] {
			if a.Err == nil && a.EndOffset >= 0 {
				l.endAt(p, asked[p], a.EndOffset)
			}
		}
		if err != nil {
			return // the next Read asks again
		}
	}
}

// endAt stores where the letters of so many leader epochs end in a partition, and drops the states
// of those behind.
func (l *Ledger) endAt(partition, epochs int32, end int64) {
	f := l.states[partition]
	if l.checked[partition] == epochs {
		l.cuts[partition], l.checked[partition] = end, l.epochs[partition]
	}
	lost := false
	for e, last := range f.last {
		known, ok := f.ends[e]
		if e == epochs || ok && e < epochs && end < known {
			f.ends[e] = end
			lost = lost || last >= end
		}
	}
	if !lost {
		return
	}
	l.taken++
	for i := range f.sets {
		for _, offset := range slices.Collect(f.sets[i].All()) {
			if f.isLost(offset) {
				l.drop(place{partition, offset})
			}
		}
	}
}

// drop removes the state of a letter.
func (l *Ledger) drop(at place) {
	delete(l.broken, at)
	f := l.states[at.partition]
	f.set(at.offset, none)
	for run := range f.redriven {
		f.redriven.remove(run, at.offset)
	}
}

// Cuts returns, by partition, the offset from which the last Read found that letters had been lost
// or had never been there, if the partition has got a new leader since the Read before.
func (l *Ledger) Cuts() map[int32]int64 { return l.cuts }

// addEpochs stores the epochs that an entry names.
func (f *stateSets) addEpochs(offset int64, epochs int32) {
	f.epochs.Set(offset, uint32(epochs))
	if epochs > 0 {
		f.last[epochs] = max(f.last[epochs], offset)
	}
}

// isLost reports whether the brokers have lost a letter since its entry.
func (f *stateSets) isLost(offset int64) bool {
	end, known := f.ends[int32(f.epochs.Of(offset))]
	return known && offset >= end
}
