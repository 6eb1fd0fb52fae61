package selection

import (
	"fmt"
	"slices"

	"github.com/sidingkafka/siding/dlq"
)

// A Selection chooses dead letters.
type Selection struct {
	// Filter decides about each letter. It is for one goroutine at a time.
	Filter dlq.Filter
	// Where is the expression of --where, or nil.
	Where *Where
}

// Narrow removes from a frozen cursor what --partition and --offset exclude. The filter excludes it
// as well; but only a narrowed cursor is done at the end of what was asked for. A partition of
// which nothing is left keeps its end, since a cursor without ends would be of the whole topic.
func (s *Selection) Narrow(c dlq.Cursor) dlq.Cursor {
	if len(s.Filter.Ranges) == 0 {
		return c
	}
	n := dlq.Cursor{Topic: c.Topic, At: map[int32]int64{}, End: map[int32]int64{}}
	for _, r := range s.Filter.Ranges {
		end, ok := c.End[r.Partition]
		if !ok {
			continue
		}
		from, until := max(r.From, c.At[r.Partition]), end
		if r.Until > 0 {
			until = min(end, r.Until)
		}
		if before, ok := n.End[r.Partition]; ok {
			from, until = min(from, n.At[r.Partition]), max(until, before)
		}
		n.At[r.Partition], n.End[r.Partition] = min(from, until), until
	}
	return n
}

// Missing returns the partitions that the flags name and that a topic with so many does not have.
func (s *Selection) Missing(partitions int32) (gone []int32) {
	for _, r := range s.Filter.Ranges {
		if r.Partition >= partitions && !slices.Contains(gone, r.Partition) {
			gone = append(gone, r.Partition)
		}
	}
	slices.Sort(gone)
	return gone
}

// Doubts reports on how many letters the expression failed so far; it is empty where it never did.
func (s *Selection) Doubts() string {
	if s.Where == nil || s.Where.Failed == 0 {
		return ""
	}
	return fmt.Sprintf("--where failed on %d of the letters, which are not chosen; the first: %v", s.Where.Failed, s.Where.First)
}
