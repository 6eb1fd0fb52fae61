package forward

import (
	"fmt"

	"github.com/sidingkafka/siding/internal/oversize"
)

// Oversize is the treatment of a record that is too large for its dead-letter topic.
type Oversize uint8

// The treatments of such a record.
const (
	Omit Oversize = iota // its letter is written without the value
	Drop                 // it is discarded
	Halt                 // its lane halts on it
)

// tooLarge decides about a copy that was refused for its size; the caller holds the lock.
// DESIGN.md, "Copies that are too large", has the steps.
func (s *Copies) tooLarge(c *Copy, err error) Outcome {
	if c.effort < tight {
		c.effort++
		return s.queue(c, c.shrunk)
	}
	if c.note { // nothing of it can be omitted
		return s.refuse(c, c.advised(err), err)
	}
	letter := c.rec.Topic == s.DLQ
	step, more := c.shrunk.Next(c.written, c.rec.Value, letter)
	switch {
	case !more && !letter:
		c.rec.Topic, c.written = s.DLQ, oversize.Letter(c.written)
		s.queue(c, oversize.Whole)
		return Diverted
	case (!more || step.Omits()) && s.OnOversize == Drop:
		return Dropped // arrived reports it first, then finishes it
	case (!more || step.Omits()) && s.OnOversize == Halt:
		s.Lane.Halt(c)
		s.finish(c, false)
		return Halted
	case !more:
		// Nothing is left to omit. The next try is of the whole copy: an operator may have raised
		// the topic's limit far enough for it.
		c.shrunk = oversize.Whole
		return s.refuse(c, c.advised(err), err)
	}
	return s.queue(c, step)
}

// advised returns the refusal of a copy of which nothing is left to omit, with what an operator can
// do about it; any other refusal as it is.
func (c *Copy) advised(err error) error {
	switch {
	case !oversize.Refused(err):
		return err
	case c.note:
		return fmt.Errorf("%w: a record about a discard does not fit into the ledger: raise its max.message.bytes", err)
	}
	return fmt.Errorf("%w: the record's own key and headers are too large for it: raise its max.message.bytes", err)
}

// queue registers that a copy will be sent alone. The caller holds the lock, and hands the copy to
// the single sender after releasing it.
func (s *Copies) queue(c *Copy, step oversize.Step) Outcome {
	c.shrunk = step
	s.wait(c, nil)
	return queued
}

// drop finishes the record of a copy that is too large. If the ledger has to have notes of the
// discard, drop sends these first, and they finish the record.
func (s *Copies) drop(c *Copy) {
	notes := s.Lane.DiscardNotes(c)
	for _, note := range notes {
		s.prepare(note)
	}
	s.Lane.Lock()
	gone := s.state == closed
	if !gone {
		for _, note := range notes {
			s.add(note) // before c is off the books: a drain ends when they are empty
		}
		s.finish(c, len(notes) == 0)
	}
	s.Lane.Unlock()
	if gone {
		return
	}
	for _, note := range notes {
		s.produce(&note.rec, note)
	}
}
