package isolate

import (
	"time"

	"github.com/sidingkafka/siding/consumer/internal/offsets"
)

// suspect is a record that waits to be run.
type suspect struct {
	feed   Feed
	offset int64
}

func (at *suspect) span() []offsets.Span { return []offsets.Span{{First: at.offset, Last: at.offset}} }

// suspected are the suspects that are ready.
type suspected struct {
	condemned, single *suspect    // one of them
	groups            [][]suspect // by feed, those that may run beside others
	left              int         // suspects, ready or not
	postponed         bool        // others wait, since a commit did not name them
}

// group returns at most that many suspects. The feeds take turns, so that they run at full
// concurrency under any order.
func (s *suspected) group(size int) map[Feed][]offsets.Span {
	hands := map[Feed][]offsets.Span{}
	for i, left := 0, size; left > 0; i++ {
		before := left
		for _, of := range s.groups {
			if i < len(of) && left > 0 {
				left--
				at := of[i]
				if spans := hands[at.feed]; len(spans) > 0 && spans[len(spans)-1].Last == at.offset-1 {
					spans[len(spans)-1].Last = at.offset
				} else {
					hands[at.feed] = append(spans, offsets.Span{First: at.offset, Last: at.offset})
				}
			}
		}
		if left == before {
			break
		}
	}
	for f, spans := range hands {
		hands[f] = offsets.Union(spans, nil) // a tier's are in the order of their due times
	}
	return hands
}

// add adds the suspects of a feed that are not in hand; the lane is locked.
func (s *suspected) add(f Feed, is *State, hand []offsets.Span, now time.Time) {
	all := is.Window.Suspects()
	// those that finished between others, which may wait for long, do not count
	unread := max(all.Suspect-is.Tracker.Next, 0)
	s.left += int(min(all.Suspect-is.Tracker.Floor(), int64(is.Tracker.Pending)+unread))
	if all.ArePostponed(now) {
		s.postponed = true
		return
	}
	var group []suspect
	for i, offset := range is.Waiting() {
		if !all.Has(offset) || offsets.In(hand, offset) {
			continue
		}
		at := suspect{f, offset}
		_, condemned := all.Condemns(offset)
		switch {
		case !condemned && !offsets.In(all.Singly, offset):
			group = append(group, at)
			continue
		case i > 0 && is.Ordered: // those before it run first
		case condemned:
			s.condemned = &at
		default:
			s.single = &at
		}
		if is.Ordered {
			break
		}
	}
	if len(group) > 0 {
		s.groups = append(s.groups, group)
	}
}
