package consumer

import (
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sidingkafka/siding/consumer/internal/fifo"
	"github.com/sidingkafka/siding/consumer/internal/offsets"
	"github.com/sidingkafka/siding/retrytopics"
)

// feed is the common part of a [sourceFeed] and a [tierFeed]: the intake of one partition. The
// lane's lock guards it.
type feed struct {
	fetch
	lane *lane
	tier retrytopics.Tier // zero for a source
	id   kadm.TopicID     // of a tier's topic, to which the offsets belong; kgo knows a source's

	origin *origin // of its attempts

	tracker     offsets.Tracker
	committedAt time.Time // when the broker last accepted an offset
	epoch       int32     // leader epoch up to which it was read, sent with the commit (KIP-320)

	fetchErrors fetchErrors // why the partition cannot be read
	// a worker has a unit; under OrderPartition no other worker gets one
	busy  bool
	ready fifo.Queue[*item] // single records that are ready
}

// start sets where the partition starts.
func (f *feed) start(at startPosition) {
	f.tracker, f.epoch = offsets.New(at.next.Offset, at.committed), at.next.Epoch
	f.tracker.Restore(at.finished, at.next.Epoch)
}

// mayCut reports whether a worker may take a unit, if the feed has one.
func (f *feed) mayCut() bool { return !f.busy || f.lane.c.cfg.Order != OrderPartition }

// needsCommit reports whether the feed has an offset to commit; the caller holds the lane's lock.
func (f *feed) needsCommit(now time.Time) bool {
	return f.tracker.Dirty() || now.Sub(f.committedAt) >= recommitAfter
}

// read notes the leader epoch of a record that was read. The epoch never falls: it is also that of
// records above the floor which an earlier owner has finished.
func (f *feed) read(epoch int32) { f.epoch = max(f.epoch, epoch) }

// readTrouble records an error of the feed's fetch.
func (f *feed) readTrouble(err error) {
	f.lane.mu.Lock()
	defer f.lane.mu.Unlock()
	f.fetchErrors.add(err, time.Now())
}

// Finish implements forward.Origin.
func (f *feed) Finish(offset int64) { f.tracker.Finish(offset) }
