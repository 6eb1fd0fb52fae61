package chaos

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// sample is what the brokers said at a time. The committed offsets were read before the ends.
type sample struct {
	began, ended int64 // nanoseconds
	group        string
	committed    map[tp]int64
	metadata     map[tp]string
	epochs       map[tp]int32 // of the leaders, by the commits
	ends         map[tp]int64
}

// holds reports whether a commit covers a record: its offset is below the floor, or the metadata
// names it as finished and the leader was not another one since.
func (s *sample) holds(at tp, offset int64, epoch int32) bool {
	if offset < s.committed[at] {
		return true
	}
	return epoch <= s.epochs[at] && slices.Contains(finishedAbove(s.metadata[at], s.committed[at]), offset)
}

// print writes the sample as lines.
func (s *sample) print(w io.Writer) {
	for at, floor := range s.committed {
		fmt.Fprintf(w, "%s %s %s/%d committed %d, epoch %d, metadata %q\n", clockTime(s.began), s.group, at.topic, at.partition, floor, s.epochs[at], s.metadata[at])
	}
	for at, end := range s.ends {
		fmt.Fprintf(w, "%s %s %s/%d ends at %d\n", clockTime(s.ended), s.group, at.topic, at.partition, end)
	}
}

// clockTime is a time for people.
func clockTime(nanos int64) string { return time.Unix(0, nanos).Format("15:04:05.000") }
