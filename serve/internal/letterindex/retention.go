package letterindex

import (
	"slices"
	"time"

	"github.com/sidingkafka/siding/dlq"
)

// TopicID returns the id of the dead-letter topic; zero before the first refresh, and if the
// brokers have no ids.
func (b *Index) TopicID() [16]byte {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.topicID
}

// EnteredBefore returns up to where the letters from some offsets on were written before a time,
// and how many these are. A partition without such a letter is missing. Letters behind one that was
// written later do not count: an archive of a partition has no gaps.
func (b *Index) EnteredBefore(from map[int32]int64, at time.Time) (until map[int32]int64, n int64) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	until = map[int32]int64{}
	before := at.UnixMilli()
	for id, p := range b.partitions {
		for r := range p.from(from[id]) {
			if r.entered >= before {
				break
			}
			until[id] = r.offset + 1
			n++
		}
	}
	return until, n
}

// Beyond counts the letters that are beyond a retention: those that it takes, and those that stay
// nevertheless. It is for deciding whether to ask [dlq.Ledger.PrunableBy], which reads the topic:
// it may take letters of the same millisecond for beyond a count.
func (b *Index) Beyond(now time.Time, r dlq.Retention) (goes, held int64) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	before := int64(0) // letters before it, in Unix milliseconds, are beyond
	if r.MaxAge > 0 {
		// rounded up, as rows have whole ones
		before = now.Add(-r.MaxAge + time.Millisecond - 1).UnixMilli()
	}
	if r.MaxCount > 0 {
		before = max(before, b.enteredBeyond(r.MaxCount)+1)
	}
	for _, p := range b.partitions {
		stays := false
		for row := range p.all {
			state := states[row.state]
			isOpen := !state.Resolves() || state == dlq.Redriven || row.copied
			is := row.entered < before
			if stays = stays || !is || isOpen && !r.Open; !stays {
				goes++
			} else if is {
				held++
			}
		}
	}
	return goes, held
}

// enteredBeyond returns when the newest letter was written that is not among so many newest ones,
// in Unix milliseconds; -1 if there are no more than these. The caller holds the lock.
func (b *Index) enteredBeyond(count int64) int64 {
	var all []int64
	n := 0
	for _, p := range b.partitions {
		n += p.n
	}
	if int64(n) <= count {
		return -1
	}
	all = make([]int64, 0, n)
	for _, p := range b.partitions {
		for r := range p.all {
			all = append(all, r.entered)
		}
	}
	slices.Sort(all)
	return all[int64(n)-count-1]
}
