package trace

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// Sample is what the brokers said at a time. The committed offsets were read before the ends.
type Sample struct {
	Began, Ended int64 // nanoseconds
	Group        string
	Committed    map[TP]int64
	Metadata     map[TP]string
	Epochs       map[TP]int32 // of the leaders, by the commits
	Ends         map[TP]int64
}

// Holds reports whether a commit covers a record: its offset is below the floor, or the metadata
// names it as finished and the leader was not another one since.
func (s *Sample) Holds(at TP, offset int64, epoch int32) bool {
	if offset < s.Committed[at] {
		return true
	}
	return epoch <= s.Epochs[at] && slices.Contains(FinishedAbove(s.Metadata[at], s.Committed[at]), offset)
}

// Print writes the sample as lines.
func (s *Sample) Print(w io.Writer) {
	for at, floor := range s.Committed {
		fmt.Fprintf(w, "%s %s %s/%d committed %d, epoch %d, metadata %q\n", ClockTime(s.Began), s.Group, at.Topic, at.Partition, floor, s.Epochs[at], s.Metadata[at])
	}
	for at, end := range s.Ends {
		fmt.Fprintf(w, "%s %s %s/%d ends at %d\n", ClockTime(s.Ended), s.Group, at.Topic, at.Partition, end)
	}
}

// ClockTime is a time for people.
func ClockTime(nanos int64) string { return time.Unix(0, nanos).Format("15:04:05.000") }
