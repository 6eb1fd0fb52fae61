package consumer

// knownSource is what there was of a source before this process joined the group.
type knownSource struct {
	partitions int32
	consumed   bool // the group, or one that it was before, had an offset on it
}

// lacks reports whether a partition without an offset was added to a source that the group consumes. All partitions of one that it
// does not consume yet are new to it, and their starts are committed by one member sooner than by another: so what other members
// committed since tells nothing.
func (s knownSource) lacks(partition int32) bool { return s.consumed || partition >= s.partitions }
