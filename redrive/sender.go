package redrive

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/redrive/internal/txn"
)

// sender writes the copies of letters, with their ledger entries, in transactions. The run's two
// producers take turns. The sender belongs to the engine's loop. Only the end of a transaction runs
// in another goroutine, and answers through ends. See DESIGN.md, "Sending".
type sender struct {
	run *ownedRun
	// closed when the run aborts; no transaction is committed after that
	aborts <-chan struct{}
	// called in another goroutine with the records of each commit
	wrote  func([]*kgo.Record)
	bucket *bucket

	letters <-chan reading // nil once all were read
	reads   *memoryBudget  // bounds the letters in memory
	buffer  []*outgoing    // read, and not in a transaction
	taken   int64          // letters added to transactions, also by earlier processes
	records []*kgo.Record  // ledger records for the next transaction

	open   *transaction
	next   int             // the producer whose turn it is
	busy   [2]bool         // its transaction is being ended
	before chan struct{}   // closed when the last transaction that was handed over has ended
	sent   <-chan struct{} // closed when its records are written
	broken atomic.Bool     // a commit failed, so later transactions must not commit
	ends   chan *transaction
}

func newSender(run *ownedRun, aborts <-chan struct{}, now time.Time) *sender {
	s := &sender{
		run: run, aborts: aborts, bucket: newBucket(run.rec.Pace.Rate, run.rec.Pace.Burst, now), taken: run.rec.Counts.Sent,
		reads: newMemoryBudget(run.r.cfg.MaxBufferedBytes), before: make(chan struct{}), ends: make(chan *transaction, 2),
	}
	close(s.before)
	s.sent = s.before
	return s
}

// record adds ledger records to the next transaction.
func (s *sender) record(records ...*kgo.Record) { s.records = append(s.records, records...) }

// done reports whether nothing is left to send.
func (s *sender) done() bool {
	return s.letters == nil && len(s.buffer) == 0 && s.open == nil && !s.ending()
}

// ending reports whether a transaction is being ended.
func (s *sender) ending() bool { return s.busy[0] || s.busy[1] }

// incoming returns the channel of letters; nil while enough letters are buffered.
func (s *sender) incoming() <-chan reading {
	if len(s.buffer) >= 2*readBatch {
		return nil
	}
	return s.letters
}

// room returns a channel that is closed when the connection has room for the next transaction; nil
// if none waits for room.
func (s *sender) room() <-chan struct{} {
	if len(s.buffer) > 0 && s.open == nil && !s.clear() {
		return s.sent
	}
	return nil
}

// clear reports whether the connection has room for another transaction. On a slow connection two
// concurrent transactions would each take twice as long.
func (s *sender) clear() bool {
	if !s.run.load.narrow {
		return true
	}
	select {
	case <-s.sent:
		return true
	default:
		return false
	}
}

// mayBegin reports whether a transaction may begin now.
func (s *sender) mayBegin() bool { return !s.busy[s.next] && s.clear() }

// begin begins a transaction of the producer whose turn it is.
func (s *sender) begin() error {
	cl := s.run.writers.Clients[s.next]
	if err := cl.BeginTransaction(); err != nil {
		return fmt.Errorf("begin: %w: %w", txn.ErrUncertain, err)
	}
	s.open = &transaction{which: s.next, cl: cl, began: time.Now(), sent: make(chan struct{}), failed: map[*kgo.Record]error{}}
	s.open.answered = s.open.promise
	return nil
}

// pump adds ready letters to the transaction while may allows it. If only a token is missing, pump
// returns the wait for it.
func (s *sender) pump(may func() bool) (wait time.Duration, err error) {
	for len(s.buffer) > 0 && may() {
		if s.open == nil {
			if !s.mayBegin() {
				return 0, nil
			}
			if err := s.begin(); err != nil {
				return 0, err
			}
		}
		if !s.run.load.fits(s.open, s.buffer[0]) {
			s.open.full = true
			s.handOver()
			continue
		}
		if s.bucket.rate >= 0 { // reading the clock costs as much as the other work for a letter
			if wait := s.bucket.take(time.Now()); wait > 0 {
				return wait, nil
			}
		}
		s.run.writers.Tighten(s.open.which, s.buffer[0].tight)
		s.open.add(s.buffer[0])
		s.buffer[0] = nil
		s.buffer = s.buffer[1:]
		s.taken++
	}
	return 0, nil
}

// tick hands over a transaction that was open for long enough. Without an open transaction it hands
// over the ledger records.
func (s *sender) tick(now time.Time) error {
	switch {
	case s.open != nil && now.Sub(s.open.began) >= txnLength:
		s.handOver()
	case s.open == nil && len(s.records) > 0 && s.mayBegin():
		if err := s.begin(); err != nil {
			return err
		}
		s.handOver()
	}
	return nil
}

// handOver ends the open transaction, if any, in another goroutine.
func (s *sender) handOver() {
	t := s.open
	if t == nil {
		return
	}
	n, bytes := s.run.load.some(s.records)
	t.bytes += bytes
	t.notes, s.records = s.records[:n:n], s.records[n:]
	s.open, s.busy[t.which], s.next = nil, true, 1-t.which
	before, after := s.before, make(chan struct{})
	s.before, s.sent = after, t.sent
	ctx, cancel := context.WithDeadline(context.Background(), t.began.Add(s.run.load.timeout))
	go func() {
		defer cancel()
		defer close(after)
		if t.err = s.end(ctx, t, before); t.committed {
			s.wrote(t.written)
		} else if len(t.refused) == 0 {
			s.broken.Store(true)
		}
		s.ends <- t
	}()
}

// ended handles the end of a transaction. It returns a letter to skip if the target refused that
// letter alone.
func (s *sender) ended(done *transaction) (stays *skip, err error) {
	s.busy[done.which] = false
	switch {
	case done.err != nil:
		return nil, s.run.load.overdue(done.began, len(done.copies)+len(done.notes), done.bytes, done.err)
	case len(done.refused) > 0:
		if err := s.enlarge(done); err != nil {
			return nil, err
		}
		return s.refused(done), nil
	case !done.committed: // the run aborts, and writes the notes with its final record
		s.record(unsent(done.notes)...)
	case len(done.copies) > 0:
		s.run.load.accepted(done)
		s.reads.free(done.held)
	}
	return nil, nil
}

// enlarge returns an error, for which the run takes itself back, if the client itself refused a
// letter, or a broker refused it alone: the next producers send letters of any size, and compress
// one that is refused alone by the strongest codec. They are not the first ones, because then
// batches of several letters may be larger than their topic takes.
func (s *sender) enlarge(done *transaction) error {
	if s.run.load.large {
		return nil
	}
	for _, o := range done.refused {
		most := client.MostBytes(done.cl, o.copy.Topic)
		if refusal(done.failed[&o.copy]) != SkippedTooLarge || client.Size(&o.copy) <= most && len(done.refused) > 1 {
			continue
		}
		s.run.load.enlarge(most)
		return fmt.Errorf("letter %v is too large for %s by this codec, or has more than the %d bytes that the client takes before compression; "+
			"the next transactions have larger batches, and the strongest codec for letters that need it: %w", o.In(s.run.topics.dlq), o.copy.Topic, most, txn.ErrUncertain)
	}
	return nil
}

// refused returns the letters of a refused transaction to the buffer; the transaction wrote
// nothing. A broker refuses whole batches and does not name the letters. So the letters go again in
// smaller transactions, until one letter is refused alone. If it is too large, it goes once more by
// the strongest codec, and then without its history, which it may do without. Otherwise it is
// skipped.
func (s *sender) refused(done *transaction) (stays *skip) {
	var alone *outgoing
	if len(done.refused) == 1 {
		alone = done.refused[0]
	}
	again := make([]*outgoing, 0, len(done.copies)+len(s.buffer))
	for _, o := range done.copies {
		s.taken--
		switch {
		case o != alone:
			again = append(again, o.fresh())
		case refusal(done.failed[&o.copy]) == SkippedTooLarge && !o.tight:
			again, alone = append(again, o.tightened()), nil
		case refusal(done.failed[&o.copy]) == SkippedTooLarge && o.hasHistory():
			again, alone = append(again, o.withoutHistory()), nil
		}
	}
	if alone != nil {
		err := done.failed[&alone.copy]
		stays = &skip{alone.Place, refusal(err), err}
		s.reads.free(int64(alone.size))
	} else if len(done.refused) > 1 {
		s.run.load.refused(len(done.refused))
	}
	s.buffer = append(again, s.buffer...)
	s.records = append(done.notes, s.records...)
	return stays
}

// drop aborts the open transaction, if any. After an error the next commit may include its records.
func (s *sender) drop() error {
	if s.open == nil {
		return nil
	}
	err := txn.Abort(s.open.cl)
	s.open = nil
	return uncertain(err)
}
