package letterindex

import "github.com/twmb/franz-go/pkg/kgo"

// ends are, by partition, the offsets behind the last records of a topic that were read.
type ends map[int32]int64

func (e ends) add(r *kgo.Record) { e[r.Partition] = r.Offset + 1 }

// beyond reports whether a partition ends before what was read: its log has lost its end.
func (e ends) beyond(now map[int32]int64) bool {
	for p, end := range now {
		if end < e[p] {
			return true
		}
	}
	return false
}
