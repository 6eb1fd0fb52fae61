package dlq

// The leader epochs that the entries of a partition name, and where these end in the brokers' log.

import (
	"slices"

	"github.com/sidingkafka/siding/internal/offsetset"
)

// letterEpochs finds which letters of a partition the brokers lost. Leader epochs and offsets grow
// together, so a letter is lost if its offset is not before the end of the epochs that its entry
// names (KIP-101).
type letterEpochs struct {
	named offsetset.Numbers // by letter, see Entry.Epochs
	last  map[int32]int64   // by number of epochs, the greatest offset of an entry's letter
	ends  map[int32]int64   // by such a number, the end of the epochs, as far as it is known
}

// add stores the epochs that an entry names.
func (e *letterEpochs) add(offset int64, epochs int32) {
	e.named.Set(offset, uint32(epochs))
	if epochs <= 0 {
		return
	}
	if e.last == nil {
		e.last, e.ends = map[int32]int64{}, map[int32]int64{}
	}
	e.last[epochs] = max(e.last[epochs], offset)
}

// open returns the numbers of epochs before now whose end is not known. The last epoch has no end.
func (e *letterEpochs) open(now int32) (epochs []int32) {
	for n := range e.last {
		if _, known := e.ends[n]; !known && n < now {
			epochs = append(epochs, n)
		}
	}
	return epochs
}

// end stores where so many epochs end, and reports whether a letter is lost by that. A shorter log
// ends the epochs before, too.
func (e *letterEpochs) end(epochs int32, at int64) (lost bool) {
	for n, last := range e.last {
		known, ok := e.ends[n]
		if n == epochs || ok && n < epochs && at < known {
			e.ends[n] = at
			lost = lost || last >= at
		}
	}
	return lost
}

// isLost reports whether the brokers lost a letter after its entry was written.
func (e *letterEpochs) isLost(offset int64) bool {
	end, known := e.ends[int32(e.named.Of(offset))]
	return known && offset >= end
}

// lost returns those of some letters that are lost.
func (e *letterEpochs) lost(of *offsetset.Set) []int64 {
	all := slices.Collect(of.All())
	return slices.DeleteFunc(all, func(offset int64) bool { return !e.isLost(offset) })
}
