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
	all    letters.Set
	states map[dlq.State]letters.Set // without failed letters
	failed map[string]letters.Set    // by class

	// by partition of the letters, in the ledger's order; the last one of a letter counts
	copies map[int32][]copied
	topics map[string]string
	lines  []inflight.QueueKey // targets of copies
	index  map[inflight.QueueKey]uint32
}

// copied is the position of a letter's copy.
type copied struct {
	letter, at int64
	line       uint32
}

func newLedgerView() *ledgerView {
	return &ledgerView{
		all: letters.Set{}, states: map[dlq.State]letters.Set{}, failed: map[string]letters.Set{},
		copies: map[int32][]copied{}, topics: map[string]string{}, index: map[inflight.QueueKey]uint32{},
	}
}

// clear removes the entry of a letter.
func (s *ledgerView) clear(at letters.Place) {
	if !s.all.Remove(at) {
		return
	}
	for _, of := range s.states {
		if of.Remove(at) {
			return
		}
	}
	for _, of := range s.failed {
		if of.Remove(at) {
			return
		}
	}
}

// add adds an entry. It keeps none of its strings, which are parts of the record.
func (s *ledgerView) add(at letters.Place, e *dlq.Entry) {
	s.clear(at)
	s.all.Add(at)
	if e.State == dlq.Failed {
		of := s.failed[e.Class]
		if of == nil {
			of = letters.Set{}
			s.failed[strings.Clone(e.Class)] = of
		}
		of.Add(at)
		return
	}
	of := s.states[e.State]
	if of == nil {
		of = letters.Set{}
		s.states[dlq.State(strings.Clone(string(e.State)))] = of
	}
	of.Add(at)
	if e.State == dlq.Redriven {
		s.copies[at.Partition] = append(s.copies[at.Partition], copied{at.Offset, e.Target.Offset, s.line(e.Target)})
	}
}

// confirm adds consumers' discard reports about letters that are redriven and have no outcome.
func (s *ledgerView) confirm(reported letters.Set) {
	for at := range reported.All() {
		if s.states[dlq.Redriven].Has(at) {
			s.add(at, &dlq.Entry{State: dlq.Discarded})
		}
	}
}

func (s *ledgerView) line(target headers.Position) uint32 {
	topic, ok := s.topics[target.Topic]
	if !ok {
		topic = strings.Clone(target.Topic)
		s.topics[topic] = topic
	}
	l := inflight.QueueKey{Topic: topic, Partition: target.Partition}
	i, ok := s.index[l]
	if !ok {
		i = uint32(len(s.lines))
		s.index[l], s.lines = i, append(s.lines, l)
	}
	return i
}

// each calls visit with each letter and its state. A failed letter has its class, and a redriven
// letter without an outcome has its target.
func (s *ledgerView) each(visit func(letters.Place, dlq.Entry)) {
	all := func(letters letters.Set, e dlq.Entry) {
		for at := range letters.All() {
			visit(at, e)
		}
	}
	for state, letters := range s.states {
		if state != dlq.Redriven {
			all(letters, dlq.Entry{State: state})
		}
	}
	for class, letters := range s.failed {
		all(letters, dlq.Entry{State: dlq.Failed, Class: class})
	}
	sent := s.states[dlq.Redriven]
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
