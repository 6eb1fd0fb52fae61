package isolate

import (
	"slices"

	"github.com/sidingkafka/siding/consumer/internal/offsets"
)

// runGroup names more suspects in a commit, beside those of the group that have not run yet, and
// lets those start that it named.
func (s *Isolator) runGroup(more map[Feed][]offsets.Span) {
	hands := map[Feed][]offsets.Span{}
	for f, spans := range more {
		hands[f] = offsets.Union(s.hands[f], spans)
	}
	named := s.name(hands, nil)
	for f, spans := range hands {
		if named[f] {
			s.hands[f] = spans
		} else if len(s.hands[f]) > 0 {
			name(f, s.hands[f], nil) // as the commit before did
		}
		if len(s.hands[f]) > 0 {
			hand(f, s.hands[f])
		}
	}
}

// name names records of feeds in a commit. It returns for which of the feeds a commit was accepted.
func (s *Isolator) name(hands map[Feed][]offsets.Span, alone *offsets.Alone) map[Feed]bool {
	lanes := s.named // the commit no longer names what ran before
	s.named = nil
	asked := map[Feed]int64{}
	for f, spans := range hands {
		n, ok := name(f, spans, alone)
		if !ok {
			continue
		}
		asked[f] = n
		if !slices.Contains(lanes, f.Lane()) {
			lanes = append(lanes, f.Lane())
		}
	}
	// The answer may be that of another lane. A commit leaves out a lane that the member does not own
	// any more.
	answer := s.process.Commit(lanes)
	s.named = stillNamed(lanes)
	s.urgent = s.urgent && answer != Final
	named := map[Feed]bool{}
	for f := range hands {
		n, ok := asked[f]
		if named[f] = ok && isNamed(f, n); !named[f] {
			postpone(f, namesAgain)
			if ok && alone != nil {
				unnameAlone(f, s.hands[f])
				if answer == Unanswered {
					s.unnames(f.Lane(), true)
				}
			} else if ok {
				name(f, nil, nil)
			}
		}
	}
	return named
}
