package consumer

import (
	"time"

	"github.com/sidingkafka/siding/consumer/internal/heldkeys"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/retrytopics"
)

// heldState is what a lane keeps of its held keys, under Config.HoldKeys.
type heldState struct {
	*heldkeys.Keys[*heldRecord]
	timer *time.Timer // for the head that is due next
	// the ends of records whose followers are dead-lettered with them
	dead map[keyHash]*keyEnd
}

func newHeldState(most int) *heldState {
	return &heldState{Keys: heldkeys.New[*heldRecord](most), dead: map[keyHash]*keyEnd{}}
}

// stop ends the timer.
func (s *heldState) stop() {
	if s != nil && s.timer != nil {
		s.timer.Stop()
	}
}

// heldRecord is a head: a record that failed, and waits in its lane for another attempt.
type heldRecord struct {
	item *item
	// what its copy in a tier would say; of an earlier owner's head the next run makes it
	meta *headers.Meta
	tier retrytopics.Tier // in which it would wait
	wait heldkeys.Wait    // of an earlier owner's head
}

// keyEnd is the end of a record's attempt under HoldKeys: the record waits as its key's head, or
// copies of it are on their way, of which keyEnd is the origin. It frees the key once all are safe.
type keyEnd struct {
	*feed
	key    keyHash
	offset int64
	tier   retrytopics.Tier // in which the record would have waited before
	waits  *heldRecord      // it waits
	sent   bool             // copies are on their way: the record keeps its key
	left   int              // copies that are not safe
	// Under FollowHead: the record was dead-lettered, and these follow it, one after the other: a
	// letter that is shrunk or refused comes later than those behind it else.
	follow    *headers.Meta
	followers []*item
	next      int
}

// keeps reports whether the record keeps its key.
func (e *keyEnd) keeps() bool { return e != nil && (e.waits != nil || e.sent) }
