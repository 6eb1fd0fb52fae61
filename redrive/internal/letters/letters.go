package letters

import (
	"iter"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/offsetset"
)

// Place is the position of a letter in its dead-letter topic.
type Place struct {
	Partition int32
	Offset    int64
}

// At returns the place of a partition and an offset.
func At(partition int32, offset int64) Place { return Place{partition, offset} }

// In returns the position of a place in a topic.
func (p Place) In(topic string) headers.Position {
	return headers.Position{Topic: topic, Partition: p.Partition, Offset: p.Offset}
}

// Set is a set of letters of one dead-letter topic, by partition. A nil Set is empty.
type Set map[int32]*offsetset.Set

// Add adds a letter, and reports whether it was not in the set.
func (s Set) Add(at Place) bool {
	set := s[at.Partition]
	if set == nil {
		set = &offsetset.Set{}
		s[at.Partition] = set
	}
	return set.Add(at.Offset)
}

// Has reports whether a letter is in the set.
func (s Set) Has(at Place) bool {
	set := s[at.Partition]
	return set != nil && set.Has(at.Offset)
}

// Remove removes a letter, and reports whether it was in the set.
func (s Set) Remove(at Place) bool {
	set := s[at.Partition]
	return set != nil && set.Remove(at.Offset)
}

// Len returns the number of letters in the set.
func (s Set) Len() (n int64) {
	for _, set := range s {
		n += int64(set.Len())
	}
	return n
}

// Clone returns a copy of the set.
func (s Set) Clone() Set {
	c := make(Set, len(s))
	for partition, set := range s {
		for offset := range set.All() {
			c.Add(Place{partition, offset})
		}
	}
	return c
}

// All yields each letter, partition by partition.
func (s Set) All() iter.Seq[Place] {
	return func(yield func(Place) bool) {
		for partition, set := range s {
			for offset := range set.All() {
				if !yield(Place{partition, offset}) {
					return
				}
			}
		}
	}
}
