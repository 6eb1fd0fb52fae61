package consumer

import "github.com/sidingkafka/siding/consumer/internal/offsets"

// heads returns what the next commit of the feed says of heads, and which changes that says.
func (f *feed) heads() ([]offsets.Head, uint64) {
	h := f.lane.held
	if h == nil || f.tier.Topic != "" {
		return nil, 0
	}
	return h.keys.Commit(f.tracker.IsFinished), h.keys.Changes()
}

// hasUnsaidHeads reports whether no commit has said the last change of the heads.
func (f *feed) hasUnsaidHeads() bool {
	return f.lane.held != nil && f.tier.Topic == "" && f.lane.held.keys.Unsaid()
}

// saidHeads registers that an accepted commit has said so many changes of the heads.
func (f *feed) saidHeads(changes uint64) {
	if f.lane.held != nil && f.tier.Topic == "" {
		f.lane.held.keys.Accepted(changes)
	}
}
