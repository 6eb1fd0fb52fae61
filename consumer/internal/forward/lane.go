package forward

import (
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Lane is what copies need of the lane that they belong to.
type Lane interface {
	// The lane's lock guards the books of its copies.
	sync.Locker
	// Changed is called with the lane locked when its books changed: another record may run now, or
	// none, and a drain may be over.
	Changed()
	// Halt is called with the lane locked for a copy that its dead-letter topic has no room for.
	Halt(c *Copy)
	// DiscardNote returns the ledger's record about a record that is discarded, given the headers
	// of its copy; nil where the ledger need not know. The lane is not locked.
	DiscardNote(written []kgo.RecordHeader) *kgo.Record
}

// Origin is the partition that a copy's record was read from.
type Origin interface {
	// Finish notes that the record at an offset is finished. The lane is locked.
	Finish(offset int64)
}

// Observer is told what becomes of copies. It is called without the lane's lock, from kgo's
// promises among others, and does not keep the copy.
type Observer interface {
	// Acknowledged is called for each copy that is safe, before its record counts as finished. r is
	// the copy as it was written.
	Acknowledged(c *Copy, r *kgo.Record)
	// Refused is called when a copy is refused until later.
	Refused(c *Copy, r Refusal)
	// Became is called when a copy takes or ends on a way of its own.
	Became(c *Copy, o Outcome, err error)
}

// Refusal is why a copy has to be tried again.
type Refusal struct {
	To   string        // the topic
	Try  int           // the first is 1
	Wait time.Duration // until the next
	Err  error
}
