package forward

import (
	"context"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/oversize"
)

// Copies are a lane's copies in flight. The lane's lock guards them, and exported methods but Init
// and Send are called with it.
//
// They are bounded in number and bytes, so that one lane without a leader cannot fill the producer.
// A lane that reached a bound waits until half of it is free: else it would stop and go at every
// acknowledgement. The zero value has none.
// See DESIGN.md, "Copies".
type Copies struct {
	Config
	promiseFunc func(*kgo.Record, error) // promise, as a value that is made once

	state        state
	outstanding  int
	bytes        int64
	full         bool
	acknowledged int // since the lane was assigned, as far as it matters
	// refused counts the outstanding ones that were refused at least once, other than to be sent
	// alone.
	refused int
	// waiting are the outstanding ones that kgo has not: until their next try, or (nil) their turn
	// alone.
	waiting  map[*Copy]*time.Timer
	trouble  string    // why the last one was refused
	progress time.Time // of the last acknowledgement, or of the first copy after a quiet time
	omitted  int       // dead letters that were written without their value
}

// Config is what a lane's copies are given.
type Config struct {
	Lane       Lane
	Observer   Observer
	Clients    *Clients
	Context    context.Context // ends when the lane abandons what was not sent
	Partition  int32
	DLQ        string // the lane's dead-letter topic
	OnOversize Oversize
}

// state is the place of a lane's copies in its life.
type state uint8

const (
	open     state = iota // refused copies are tried again
	draining              // nothing is tried again; what kgo has may still be safe
	closed                // the next owner has the records: what comes back is ignored
)

// Init gives the copies what they need, before the first is sent.
func (s *Copies) Init(cfg Config) {
	s.Config = cfg
	s.promiseFunc = s.promise
}

// Send has a copy written. It does not wait; the copy's record is finished when the copy is safe.
// The lane is not locked.
func (s *Copies) Send(c *Copy) {
	if !c.note {
		c.rec.Partition = s.Partition
	}
	c.of, c.partition, c.written = s, c.rec.Partition, c.rec.Headers
	c.size = RecordSize(&c.rec)
	s.Lane.Lock()
	if s.outstanding == 0 {
		s.progress = time.Now()
	}
	s.outstanding++
	s.bytes += c.size
	s.Lane.Changed()
	s.Lane.Unlock()
	s.produce(&c.rec, c)
}

// produce hands a copy to kgo, which takes it without waiting.
func (s *Copies) produce(r *kgo.Record, c *Copy) {
	if err := c.via.produce(copyContext{c}, &s.Clients.batched, r, s.promiseFunc); err != nil {
		s.arrived(c, err)
	}
}

// promise is kgo's promise of every copy of the lane.
func (s *Copies) promise(r *kgo.Record, err error) {
	c := copyOf(r)
	by := c.via // a copy that is sent alone next gets another
	if err == nil {
		s.Observer.Acknowledged(c, r)
	}
	s.arrived(c, err)
	by.back()
}

// arrived sees to a copy that is safe, or was refused for good; kgo repeats by itself what is worth
// repeating. It takes the lane's lock, and reports and sends without.
func (s *Copies) arrived(c *Copy, err error) {
	s.Lane.Lock()
	became := s.landed(c, err)
	to, tries := c.rec.Topic, c.tries // the next try may change them
	s.Lane.Unlock()
	switch became {
	case done:
	case refused:
		s.Observer.Refused(c, Refusal{to, int(tries), retryWait(tries), err})
	case queued:
		s.Clients.single.send(c)
	case Diverted:
		s.Observer.Became(c, became, err)
		s.Clients.single.send(c)
	case Dropped:
		s.Observer.Became(c, became, err)
		s.drop(c)
	default:
		s.Observer.Became(c, became, err)
	}
}

// landed keeps the books of a copy that came back; the caller holds the lock.
func (s *Copies) landed(c *Copy, err error) Outcome {
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
	return s.refuse(c, c.rec.Topic+": "+err.Error(), err)
}

// growthChecks is how often a client looks its topics up for the partition of a copy before the
// copy counts as refused: for some three seconds, in which siblings that grew with their source
// appear.
const growthChecks = 12

// isNewPartition reports whether kgo refuses a copy because it knows of fewer partitions, which it
// learns by itself within five minutes. Only the text of the error says so.
func isNewPartition(err error) bool {
	return strings.HasPrefix(err.Error(), "invalid record partitioning choice")
}

// finish takes a copy off the books, and finishes its record if that is safe; the caller holds the
// lock.
func (s *Copies) finish(c *Copy, safe bool) (became Outcome) {
	s.remove(c)
	s.progress = s.Clients.clock.About()
	if safe {
		s.acknowledged = min(s.acknowledged+1, 24) // beyond any bound
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

// firstCopies is how many copies a new lane has in flight before the first is acknowledged. Each
// acknowledgement doubles it, up to the bound. So where copies cannot be written, a lane that comes
// from another owner runs no further than that before it knows.
const firstCopies = 8

// Room reports whether a record may run whose failure would send another copy, within bounds for
// their number and bytes. One refused copy holds up its lane: the next records would most likely
// join it.
func (s *Copies) Room(count int, bytes int64) bool {
	count = min(count, firstCopies<<s.acknowledged)
	if s.full {
		count, bytes = count/2, bytes/2
	}
	s.full = s.outstanding > 0 && (s.outstanding >= count || s.bytes >= bytes)
	return s.refused == 0 && !s.full
}

// Outstanding returns how many copies are neither safe nor given up.
func (s *Copies) Outstanding() int { return s.outstanding }

// Omitted returns how many dead letters were written without their value.
func (s *Copies) Omitted() int { return s.omitted }

// Trouble returns since when and why copies hold up the lane: one was refused, or there was no
// answer for longer than patience. why is empty if they do not.
func (s *Copies) Trouble(now time.Time, patience time.Duration) (since time.Time, why string) {
	switch {
	case s.refused > 0:
		return s.progress, s.trouble
	case s.outstanding > 0 && now.Sub(s.progress) > patience:
		return s.progress, "copies are not acknowledged: does every sibling have a leader and enough in-sync replicas?"
	}
	return time.Time{}, ""
}

// Drain gives up the copies that kgo has not: their records stay uncommitted, and the next owner
// forwards them. What kgo has may still be safe.
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

// Close is Drain, and ignores what comes back.
func (s *Copies) Close() {
	s.state = closed
	s.Drain()
}
