package redrive

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/internal/inflight"
	"github.com/sidingkafka/siding/redrive/internal/letters"
)

// ledgerView holds the last entry of each letter of a run, reduced to the parts that a run needs. A
// letter is in the set of its state. A redriven letter takes 24 bytes more, so that the entries of
// millions of letters fit into memory.
type ledgerView struct {
	all  letters.Set
	sets map[outcome]letters.Set

	// by partition of the letters, in the ledger's order; the last one of a letter counts
	copies map[int32][]copied
	lines  []inflight.QueueKey // targets of copies
	index  map[inflight.QueueKey]uint32
}

// outcome is the state of a letter, with the class of a failed one.
type outcome struct {
	state dlq.State
	class string
}

// copied is the position of a letter's copy.
type copied struct {
	letter, at int64
	line       uint32
}

func newLedgerView() *ledgerView {
	return &ledgerView{
		all: letters.Set{}, sets: map[outcome]letters.Set{}, copies: map[int32][]copied{}, index: map[inflight.QueueKey]uint32{},
	}
}

// clear removes the entry of a letter.
func (s *ledgerView) clear(at letters.Place) {
	if !s.all.Remove(at) {
		return
	}
	for _, of := range s.sets {
		if of.Remove(at) {
			return
		}
	}
}

// add adds an entry. It keeps none of its strings, which are parts of the record.
func (s *ledgerView) add(at letters.Place, e *dlq.Entry) {
	s.clear(at)
	s.all.Add(at)
	o := outcome{state: e.State}
	if e.State == dlq.Failed {
		o.class = e.Class
	}
	of := s.sets[o]
	if of == nil {
		of = letters.Set{}
		s.sets[outcome{dlq.State(strings.Clone(string(o.state))), strings.Clone(o.class)}] = of
	}
	of.Add(at)
	if e.State == dlq.Redriven {
		s.copies[at.Partition] = append(s.copies[at.Partition], copied{at.Offset, e.Target.Offset, s.line(e.Target)})
	}
}

// confirm adds consumers' discard reports about letters that are redriven and have no outcome.
func (s *ledgerView) confirm(reported letters.Set) {
	for at := range reported.All() {
		if s.sets[outcome{state: dlq.Redriven}].Has(at) {
			s.add(at, &dlq.Entry{State: dlq.Discarded})
		}
	}
}

func (s *ledgerView) line(target headers.Position) uint32 {
	l := inflight.QueueKey{Topic: target.Topic, Partition: target.Partition}
	i, ok := s.index[l]
	if !ok {
		l.Topic, i = strings.Clone(l.Topic), uint32(len(s.lines))
		s.index[l], s.lines = i, append(s.lines, l)
	}
	return i
}

// each calls visit with each letter and its state. A failed letter has its class, and a redriven
// letter without an outcome has its target.
func (s *ledgerView) each(visit func(letters.Place, dlq.Entry)) {
	sent := s.sets[outcome{state: dlq.Redriven}]
	for o, letters := range s.sets {
		if o.state == dlq.Redriven {
			continue
		}
		for at := range letters.All() {
			visit(at, dlq.Entry{State: o.state, Class: o.class})
		}
	}
	for partition, copies := range s.copies {
		slices.SortStableFunc(copies, func(a, b copied) int { return cmp.Compare(a.letter, b.letter) })
		for i, c := range copies {
			if i+1 < len(copies) && copies[i+1].letter == c.letter || !sent.Has(letters.At(partition, c.letter)) {
				continue
			}
			l := s.lines[c.line]
			visit(letters.At(partition, c.letter), dlq.Entry{State: dlq.Redriven, Target: headers.Position{Topic: l.Topic, Partition: l.Partition, Offset: c.at}})
		}
	}
}
