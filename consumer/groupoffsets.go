package consumer

import (
	"cmp"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// groupOffsets are the offsets of a group, as far as its coordinator told them.
type groupOffsets struct {
	group   string
	at      map[topicPartition]kgo.EpochOffset // offset -1 where there is none
	refused map[topicPartition]error
	err     error // about all of them
}

// of is the group's offset on a partition, -1 where it has none.
func (o groupOffsets) of(at topicPartition) (kgo.EpochOffset, error) {
	offset, ok := o.at[at]
	err := cmp.Or(o.err, o.refused[at])
	switch {
	case err != nil:
		return offset, fmt.Errorf("fetch of the offset of group %q on %s/%d: %w", o.group, at.topic, at.partition, err)
	case !ok:
		return offset, fmt.Errorf("fetch of the offset of group %q on %s/%d: the broker says nothing of it; has it the topic, and may this user see it?", o.group, at.topic, at.partition)
	}
	return offset, nil
}

// formerOffsets are where the groups that this one was before left off.
type formerOffsets []groupOffsets

// of is the offset of the first of the groups that has one on the partition.
func (f formerOffsets) of(at topicPartition) (offset kgo.EpochOffset, known bool, err error) {
	for _, group := range f {
		if offset, err = group.of(at); err != nil || offset.Offset >= 0 {
			return offset, err == nil, err
		}
	}
	return kgo.EpochOffset{}, false, nil
}
