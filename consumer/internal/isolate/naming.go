package isolate

import (
	"slices"
	"time"

	"github.com/sidingkafka/siding/consumer/internal/offsets"
)

// namesAgain is how long the suspects of a feed wait after a commit did not name them.
const namesAgain = time.Second

// aloneWithin bounds the wait until no handler runs but late ones. No record starts meanwhile. It
// also bounds the tries of a commit that names none.
const aloneWithin = time.Minute

// naming makes the commits that name records, and those that name them no longer.
type naming struct {
	process Process
	named   []Lane // the last commit named records of theirs
	urgent  bool   // one of these ran alone, and is to be named no longer
}

// name names records of feeds in a commit, or one that runs alone, beside a group of its feed that
// was named before. It returns for which of the feeds a commit was accepted.
func (n *naming) name(hands map[Feed][]offsets.Span, alone *offsets.Alone, group []offsets.Span) map[Feed]bool {
	lanes := n.named // the commit no longer names what ran before
	n.named = nil
	asked := map[Feed]int64{}
	for f, spans := range hands {
		number, ok := name(f, spans, alone)
		if !ok {
			continue
		}
		asked[f] = number
		if !slices.Contains(lanes, f.Lane()) {
			lanes = append(lanes, f.Lane())
		}
	}
	// The answer may be that of another lane. A commit leaves out a lane that the member does not
	// own any more.
	answer := n.process.Commit(lanes)
	n.named = stillNamed(lanes)
	n.urgent = n.urgent && answer != Final
	named := map[Feed]bool{}
	for f := range hands {
		number, ok := asked[f]
		if named[f] = ok && isNamed(f, number); !named[f] {
			postpone(f, namesAgain)
			if ok && alone != nil {
				unnameAlone(f, group)
				if answer == Unanswered {
					n.unnames(f.Lane(), true)
				}
			} else if ok {
				name(f, nil, nil)
			}
		}
	}
	return named
}

// unname commits that the record which ran alone does so no more: a later kill must not charge it.
// It tries again while no broker answers, or the member joins, for aloneWithin at most. After a
// refusal the next tick tries again: others must not wait for a right that may never come.
func (n *naming) unname() {
	for began := time.Now(); n.urgent; {
		answer := n.process.Commit(n.named)
		n.named = stillNamed(n.named)
		n.urgent = answer != Final && time.Since(began) < aloneWithin && n.process.Wait(namesAgain)
	}
}

// stillNamed returns which of the lanes the broker accepted no commit of that says what they no
// longer run. The next commit that names another record has to say so, too: that record may kill.
func stillNamed(lanes []Lane) (left []Lane) {
	for _, l := range lanes {
		if l.AwaitsCommit() {
			left = append(left, l)
		}
	}
	return left
}

// unnames records that the next commit has to name records of a lane no longer.
func (n *naming) unnames(l Lane, urgent bool) {
	if n.urgent = n.urgent || urgent; !slices.Contains(n.named, l) {
		n.named = append(n.named, l)
	}
}
