package consumer

import "github.com/sidingkafka/siding/retrytopics"

// drainedTier is a retry topic that is not configured but belongs to the group: a tier that left
// the configuration, or a tier of a former group. Its lanes run its records when they are due; a
// record that fails again goes to a configured tier. siding writes nothing new to it. Its offsets
// are committed, and kept from expiring, like those of other feeds. See DESIGN.md, "Drained tiers".
type drainedTier struct {
	retrytopics.Tier
	partitions int32 // may be fewer than the source's, which can grow
}
