package consumer

import (
	"time"

	"github.com/sidingkafka/siding/consumer/internal/offsets"
)

// suspect is a record that waits to be run.
type suspect struct {
	feed   *feed
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
func (s *suspected) group(size int) map[*feed][]offsets.Span {
	hands := map[*feed][]offsets.Span{}
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

// add adds the suspects of a feed that are not in hand; the caller holds the lane's lock.
func (s *suspected) add(f *feed, hand []offsets.Span, now time.Time) {
	is := f.window.Suspects()
	s.left += int(is.Suspect - f.tracker.Floor())
	if is.ArePostponed(now) {
		s.postponed = true
		return
	}
	ordered := f.lane.c.cfg.Order == OrderPartition && f.tier.Topic == ""
	var group []suspect
	for i, offset := range f.waiting() {
		if !f.window.Suspects().Has(offset) || offsets.In(hand, offset) {
			continue
		}
		at := suspect{f, offset}
		_, condemned := f.window.Suspects().Condemns(offset)
		switch {
		case !condemned && !offsets.In(is.Singly, offset):
			group = append(group, at)
			continue
		case i > 0 && ordered: // those before it run first
		case condemned:
			s.condemned = &at
		default:
			s.single = &at
		}
		if ordered {
			break
		}
	}
	if len(group) > 0 {
		s.groups = append(s.groups, group)
	}
}
