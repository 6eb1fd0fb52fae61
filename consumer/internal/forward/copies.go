package forward

// The copies in flight of one lane; copies_oversize.go shrinks them.

import (
	"context"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/backoff"
	"github.com/sidingkafka/siding/internal/oversize"
)

// Copies are a lane's copies in flight. The lane's lock guards them. The caller holds it for all
// exported methods except Init and Send.
//
// They are bounded in number and bytes, so that one lane without a leader cannot fill the producer.
// A lane that reached a bound waits until half of it is free; otherwise it would stop and go at
// every acknowledgement. Call Init before Send.
// See DESIGN.md, "Copies".
type Copies struct {
	Config
	promiseFunc func(*kgo.Record, error) // the method promise as a value, made once

	state        state
	outstanding  int
	bytes        int64
	full         bool
	acknowledged int // since the lane was assigned, as far as it matters
	// refused counts the outstanding copies that were refused at least once. A refusal after which
	// the copy is sent alone does not count.
	refused int
	// waiting are the outstanding copies that kgo does not have. Each has the timer of its next
	// try; nil means that it waits for its turn to be sent alone.
	waiting  map[*Copy]*time.Timer
	trouble  error     // why the last refused copy was refused, as Kafka or kgo said it
	progress time.Time // of the last acknowledgement, or of the first copy when none was in flight
	omitted  int       // dead letters that were written without their value
}

// Config is what a lane gives to its copies.
type Config struct {
	Lane       Lane
	Observer   Observer
	Clients    *Clients
	Context    context.Context // ends when the lane abandons the copies that were not sent
	Partition  int32
	DLQ        string // the lane's dead-letter topic
	OnOversize Oversize
}

// state is the stage of the lane's life in which its copies are.
type state uint8

const (
	open     state = iota // refused copies are tried again
	draining              // no copy is tried again; those that kgo has may still become safe
	closed                // the next owner has the records: promises are ignored
)

// Init sets the configuration. It is called once, before the first Send.
func (s *Copies) Init(cfg Config) {
	s.Config = cfg
	s.promiseFunc = s.promise
}

// Send writes a copy. It does not wait: the copy's record is finished later, when the copy is safe.
// The caller does not hold the lane's lock.
func (s *Copies) Send(c *Copy) {
	s.prepare(c)
	s.Lane.Lock()
	s.add(c)
	s.Lane.Unlock()
	s.produce(&c.rec, c)
}

// prepare completes a new copy.
func (s *Copies) prepare(c *Copy) {
	if !c.note {
		c.rec.Partition = s.Partition
	}
	c.of, c.partition, c.written = s, c.rec.Partition, c.rec.Headers
	c.size = RecordSize(&c.rec)
}

// add takes a new copy on the books. The caller holds the lock, and then hands the copy to kgo.
func (s *Copies) add(c *Copy) {
	if s.outstanding == 0 {
		s.progress = time.Now()
	}
	s.outstanding++
	s.bytes += c.size
	s.Lane.Changed()
}

// produce hands a copy to kgo, without waiting.
func (s *Copies) produce(r *kgo.Record, c *Copy) {
	if err := c.via.produce(copyContext{c}, &s.Clients.by[batched], r, s.promiseFunc); err != nil {
		s.returned(c, err)
	}
}

// promise is the callback that kgo calls once for every copy of the lane that it was given.
func (s *Copies) promise(r *kgo.Record, err error) {
	c := copyOf(r)
	by := c.via // arrived may hand the copy to another client
	if err == nil {
		s.Observer.Acknowledged(c, r)
	}
	s.returned(c, err)
	by.back()
}

// returned handles a copy that is safe, or that kgo gave back with an error. kgo has repeated
// retriable errors by itself. arrived takes the lane's lock, and releases it before it reports and
// sends.
func (s *Copies) returned(c *Copy, err error) {
	s.Lane.Lock()
	became := s.endTry(c, err)
	to, tries := c.rec.Topic, c.tries // the next try may change them
	s.Lane.Unlock()
	switch became {
	case done:
	case refused:
		s.Observer.Refused(c, Refusal{to, int(tries), retryWait(tries), c.advised(err)})
	case queued:
		s.Clients.single.send(c)
	case Diverted:
		s.Observer.Ended(c, became, err)
		s.Clients.single.send(c)
	case Dropped:
		s.Observer.Ended(c, became, err)
		s.drop(c)
	default:
		s.Observer.Ended(c, became, err)
	}
}

// endTry keeps the books of a copy that kgo gave back. The caller holds the lock.
func (s *Copies) endTry(c *Copy, err error) Outcome {
	switch {
	case s.state == closed:
		return done
	case err == nil || s.state == draining:
		return s.finish(c, err == nil)
	case c.unwritable(err):
		s.finish(c, true)
		return NoteLost
	case oversize.Refused(err):
		return s.tooLarge(c, err)
	case c.checks < growthChecks && isNewPartition(err):
		c.checks++
		s.scheduleRetry(c, refreshAhead)
		return done
	}
	return s.refuse(c, err, err)
}

// growthChecks is how often a client refreshes its metadata for the partition of a copy before the
// copy counts as refused. They take some three seconds, in which the new partitions of siblings
// that grew with their source appear.
const growthChecks = 12

// isNewPartition reports whether kgo refuses a copy because its metadata has fewer partitions. kgo
// alone would refresh it within five minutes. Only the text of the error identifies this case.
func isNewPartition(err error) bool {
	return strings.HasPrefix(err.Error(), "invalid record partitioning choice")
}

// finish takes a copy off the books, and finishes its record if safe is set. The caller holds the
// lock.
func (s *Copies) finish(c *Copy, safe bool) (became Outcome) {
	s.remove(c)
	s.progress = s.Clients.clock.About()
	if safe {
		s.acknowledged = min(s.acknowledged+1, 24) // more than any bound needs
		c.from.Finish(c.offset)
		if c.shrunk.Omits() {
			s.omitted++
			became = Omitted
		}
	}
	s.Lane.Changed()
	return became
}

// remove takes a copy off the books.
func (s *Copies) remove(c *Copy) {
	s.outstanding--
	s.bytes -= c.size
	if c.tries > 0 {
		s.refused--
	}
}

// firstCopies is how many copies a new lane may have in flight before the first is acknowledged.
// Each acknowledgement doubles it, up to the bound. So where copies cannot be written, a lane that
// moved here from another process runs few records before it finds out.
const firstCopies = 8

// Room reports whether the lane may run a record, whose failure would send another copy. count and
// bytes bound the copies in flight. One refused copy holds up its lane, because the next copies
// would most likely be refused too.
func (s *Copies) Room(count int, bytes int64) bool {
	count = min(count, firstCopies<<s.acknowledged)
	if s.full {
		count, bytes = count/2, bytes/2
	}
	s.full = s.outstanding > 0 && (s.outstanding >= count || s.bytes >= bytes)
	return s.refused == 0 && !s.full
}

// Outstanding returns how many copies are on the books: neither safe nor abandoned.
func (s *Copies) Outstanding() int { return s.outstanding }

// Omitted returns how many dead letters were written without their value.
func (s *Copies) Omitted() int { return s.omitted }

// Trouble returns since when and why copies hold up the lane: one was refused, or none was
// acknowledged for longer than patience. why is nil if they do not.
func (s *Copies) Trouble(now time.Time, patience time.Duration) (since time.Time, why error) {
	switch {
	case s.refused > 0:
		return s.progress, s.trouble
	case s.outstanding > 0 && now.Sub(s.progress) > patience:
		return s.progress, errUnacknowledged
	}
	return time.Time{}, nil
}

// Drain abandons the copies that kgo does not have: their records stay uncommitted, and the next
// owner forwards them. Copies that kgo has may still become safe.
func (s *Copies) Drain() {
	s.state = max(s.state, draining)
	for c, t := range s.waiting {
		if t != nil {
			t.Stop()
		}
		s.remove(c)
	}
	s.waiting = nil
}

// Close drains, and ignores the promises of the copies that kgo still has.
func (s *Copies) Close() {
	s.state = closed
	s.Drain()
}

// refuse schedules the next try of a copy. The caller holds the lock.
func (s *Copies) refuse(c *Copy, why, err error) Outcome {
	if c.tries++; c.tries == 1 {
		s.refused++
	}
	s.trouble = refusal(c.rec.Topic, why)
	c.via.refused(c.rec.Topic, err)
	s.scheduleRetry(c, retryWait(c.tries))
	s.Lane.Changed()
	return refused
}

// retryWait returns how long a copy waits after its refusal number tries.
func retryWait(tries int32) time.Duration {
	return backoff.Of(int(tries), refreshAhead, 15*time.Second)
}

// scheduleRetry tries a copy again after wait. It makes the copy's client ready for that
// refreshAhead before. The caller holds the lock.
func (s *Copies) scheduleRetry(c *Copy, wait time.Duration) {
	s.wait(c, time.AfterFunc(wait-refreshAhead, func() {
		c.producers().makeReady(s.Clients.ctx, c.rec.Topic)
		s.Lane.Lock()
		defer s.Lane.Unlock()
		if _, still := s.waiting[c]; still {
			s.wait(c, time.AfterFunc(refreshAhead, func() { s.retry(c) }))
		}
	}))
}

// wait adds a copy to those that wait, with the timer of its next try, if any. The caller holds the
// lock.
func (s *Copies) wait(c *Copy, t *time.Timer) {
	if s.waiting == nil {
		s.waiting = map[*Copy]*time.Timer{}
	}
	s.waiting[c] = t
}

// retry sends a refused copy again, unless its lane abandoned it.
func (s *Copies) retry(c *Copy) {
	if c.effort > batched {
		s.Clients.single.send(c)
	} else if s.takesTurn(c) {
		s.produce(c.nextRecord(), c)
	}
}

// takesTurn ends the wait of a copy, and reports whether its lane still wants it sent.
func (s *Copies) takesTurn(c *Copy) bool {
	s.Lane.Lock()
	defer s.Lane.Unlock()
	_, still := s.waiting[c]
	delete(s.waiting, c)
	return still
}
