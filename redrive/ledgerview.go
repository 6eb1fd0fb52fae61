package redrive

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

// ledgerView is what a ledger says of the letters of a run: of each the last entry, as far as a run wants it. A letter is in the set of its
// state, and one that was sent takes 24 bytes more, so that the entries of millions fit into memory.
type ledgerView struct {
	all    selection
	states map[dlq.State]selection // but for those that failed
	failed map[string]selection    // by class

	copies map[int32][]copied // by partition of the letters, in the ledger's order: of a letter the last counts
	topics map[string]string
	lines  []queueKey // their targets
	index  map[queueKey]uint32
}

// copied says where the copy of a letter is.
type copied struct {
	letter, at int64
	line       uint32
}

func newLedgerView() *ledgerView {
	return &ledgerView{
		all: selection{}, states: map[dlq.State]selection{}, failed: map[string]selection{},
		copies: map[int32][]copied{}, topics: map[string]string{}, index: map[queueKey]uint32{},
	}
}

// clear takes back what was said of a letter.
func (s *ledgerView) clear(at place) {
	if !s.all.remove(at.partition, at.offset) {
		return
	}
	for _, of := range s.states {
		if of.remove(at.partition, at.offset) {
			return
		}
	}
	for _, of := range s.failed {
		if of.remove(at.partition, at.offset) {
			return
		}
	}
}

// add takes down an entry, of which nothing is kept: its strings are parts of the record.
func (s *ledgerView) add(at place, e *dlq.Entry) {
	s.clear(at)
	s.all.add(at.partition, at.offset)
	if e.State == dlq.Failed {
		of := s.failed[e.Class]
		if of == nil {
			of = selection{}
			s.failed[strings.Clone(e.Class)] = of
		}
		of.add(at.partition, at.offset)
		return
	}
	of := s.states[e.State]
	if of == nil {
		of = selection{}
		s.states[dlq.State(strings.Clone(string(e.State)))] = of
	}
	of.add(at.partition, at.offset)
	if e.State == dlq.Redriven {
		s.copies[at.partition] = append(s.copies[at.partition], copied{at.offset, e.Target.Offset, s.line(e.Target)})
	}
}

// confirm takes down what consumers say of the letters of which no more is known than that they were sent.
func (s *ledgerView) confirm(heard selection) {
	for partition, set := range heard {
		for offset := range set.All() {
			if s.states[dlq.Redriven].has(partition, offset) {
				s.add(place{partition, offset}, &dlq.Entry{State: dlq.Discarded})
			}
		}
	}
}

func (s *ledgerView) line(target headers.Position) uint32 {
	topic, ok := s.topics[target.Topic]
	if !ok {
		topic = strings.Clone(target.Topic)
		s.topics[topic] = topic
	}
	l := queueKey{"", topic, target.Partition}
	i, ok := s.index[l]
	if !ok {
		i = uint32(len(s.lines))
		s.index[l], s.lines = i, append(s.lines, l)
	}
	return i
}

// each tells of each letter its state, the class of one that failed, and the target of one of which no more is known than that it was sent.
func (s *ledgerView) each(tell func(place, dlq.Entry)) {
	all := func(letters selection, e dlq.Entry) {
		for partition, set := range letters {
			for offset := range set.All() {
				tell(place{partition, offset}, e)
			}
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
			if i+1 < len(copies) && copies[i+1].letter == c.letter || !sent.has(partition, c.letter) {
				continue
			}
			l := s.lines[c.line]
			tell(place{partition, c.letter}, dlq.Entry{State: dlq.Redriven, Target: headers.Position{Topic: l.topic, Partition: l.partition, Offset: c.at}})
		}
	}
}
