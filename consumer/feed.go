package consumer

import (
	"time"

	"github.com/sidingkafka/siding/consumer/internal/fifo"
	"github.com/sidingkafka/siding/consumer/internal/offsets"
	"github.com/sidingkafka/siding/retrytopics"
)

// feed is what the intake of a source partition and that of a retry partition have in common: a
// [sourceFeed] and a [tierFeed] each have one. The lane's lock guards it.
type feed struct {
	fetch
	lane *lane
	tier retrytopics.Tier // a source has none

	origin *origin // of its attempts

	tracker     offsets.Tracker
	committedAt time.Time // when the broker last took an offset
	epoch       int32     // leader epoch of the last record, sent with the commit (KIP-320)

	fetchErrors fetchErrors       // why it is not read
	busy        bool              // a worker has a unit of it; under OrderPartition no other has
	ready       fifo.Queue[*item] // single records that may run
}

// mayCut reports whether a worker may take a unit, if there is one.
func (f *feed) mayCut() bool { return !f.busy || f.lane.c.cfg.Order != OrderPartition }

// needsCommit reports whether the feed has an offset to commit; the caller holds the lane's lock.
func (f *feed) needsCommit(now time.Time) bool {
	return f.tracker.Dirty() || now.Sub(f.committedAt) >= recommitAfter
}

// readTrouble notes that the fetch of a feed was refused.
func (f *feed) readTrouble(err error) {
	f.lane.mu.Lock()
	defer f.lane.mu.Unlock()
	f.fetchErrors.add(err, time.Now())
}

// Finish implements forward.Origin.
func (f *feed) Finish(offset int64) { f.tracker.Finish(offset) }
