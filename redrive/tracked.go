package redrive

import "fmt"

// What becomes of a letter is told by the committed offsets of its group, and by what that writes into the siblings of the source if it
// fails again. On any other topic it fails into that topic's siblings, if anybody reads it at all, and of a letter without a group nobody
// knows whose offsets count. Such letters are not followed: the ledger says that of them, which settles them, and nothing waits for more.

// follows reports whether it will be known what becomes of a letter of a group.
func (h *ownedRun) follows(group string) bool {
	return h.rec.toTier() || h.rec.Target.Topic == h.topics.source && group != ""
}

// followsSent reports that of a letter of which an entry is known that says that it was sent, and not whose it is. Such an entry is of a
// letter that is followed, unless a version wrote it that told of all alike: there each may be one without a group, where there are some.
func (h *ownedRun) followsSent() bool {
	return h.rec.toTier() || h.rec.Target.Topic == h.topics.source && h.rec.Groupless == 0
}

// follows reports whether it would be known what becomes of a letter of a group.
func (p *Plan) follows(group string) bool {
	return group != "" && (p.toTier || p.Selection.Target.Topic == p.topics.source)
}

// unfollowed is how many letters of the plan would not be followed, and why.
func (p *Plan) unfollowed() (n int64, why string) {
	switch target := p.Selection.Target.Topic; {
	case p.toTier:
		return 0, ""
	case target != p.topics.source:
		return p.Letters, fmt.Sprintf("%s is another topic than %s, where they failed", target, p.topics.source)
	default:
		return p.ByGroup[""], "they name no group"
	}
}
