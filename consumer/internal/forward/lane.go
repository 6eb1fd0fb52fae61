package forward

// The interfaces by which a lane is known.

import (
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Lane is the lane that copies belong to.
type Lane interface {
	// Locker is the lane's lock, which guards the books of its copies.
	sync.Locker
	// Changed is called with the lane locked when its books changed: the lane may have to run more
	// records or pause, and a drain may be over.
	Changed()
	// Halt is called with the lane locked for a copy that is too large for its dead-letter topic.
	Halt(c *Copy)
	// DiscardNotes returns notes for the ledger about a discarded record, given its copy; none if
	// the ledger needs none. The last of them finishes the record. The lane is not locked.
	DiscardNotes(c *Copy) []*Copy
}

// Origin is the partition that a copy's record was read from.
type Origin interface {
	// Finish registers that the record at an offset is finished. The lane is locked.
	Finish(offset int64)
}

// Observer reports the outcomes of copies. Its methods are called without the lane's lock,
// concurrently, and from kgo's promises among others. They must not wait, and must not keep the
// copy.
type Observer interface {
	// Acknowledged is called for each safe copy, before its original record is finished. r is the
	// copy as it was written.
	Acknowledged(c *Copy, r *kgo.Record)
	// Refused is called when a copy is refused and will be tried again.
	Refused(c *Copy, r Refusal)
	// Ended is called with the outcome of every other copy that is not simply done: [Diverted],
	// [Omitted], [Dropped], [Halted] or [NoteLost]. err is why, if a broker or kgo refused it.
	Ended(c *Copy, o Outcome, err error)
}

// Refusal describes a copy that has to be tried again.
type Refusal struct {
	To   string        // the copy's topic
	Try  int           // the first is 1
	Wait time.Duration // until the next try
	Err  error
}
