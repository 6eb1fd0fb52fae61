package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Offset is a committed offset with its metadata. Offset -1: the group has none.
type Offset struct {
	kgo.EpochOffset
	Metadata string
}

// GroupOffsets are the offsets of a group, as its coordinator reported them.
type GroupOffsets struct {
	group   string
	at      map[place]Offset
	refused map[place]error
	err     error // about all partitions
}

type place struct {
	topic     string
	partition int32
}

// Of returns the group's offset on a partition, -1 if it has none. Its errors name the group and
// the partition.
func (o GroupOffsets) Of(topic string, partition int32) (Offset, error) {
	offset, ok := o.at[place{topic, partition}]
	err := cmp.Or(o.err, o.refused[place{topic, partition}])
	switch {
	case err != nil:
		return offset, fmt.Errorf("fetch of the offset of group %q on %s/%d: %w", o.group, topic, partition, err)
	case !ok:
		return offset, fmt.Errorf("fetch of the offset of group %q on %s/%d: the answer does not contain it; does the topic exist, and may this user describe it?",
			o.group, topic, partition)
	}
	return offset, nil
}

// Former are the offsets of the groups whose work a group continues, the latest of its names first.
type Former []GroupOffsets

// Of returns the offset of the first group that has one on the partition. known is false if none
// has.
func (f Former) Of(topic string, partition int32) (offset Offset, known bool, err error) {
	for _, group := range f {
		if offset, err = group.Of(topic, partition); err != nil || offset.Offset >= 0 {
			return offset, err == nil, err
		}
	}
	return Offset{}, false, nil
}

// OffsetsOf asks for a group's stable offsets: it waits for open transactions that may still commit
// some. It asks by partition, because a request for all of them omits topics that the user may not
// describe, as if the group had no offset there. Its errors come from [GroupOffsets.Of].
func (c *Cluster) OffsetsOf(ctx context.Context, group string, partitions map[string][]int32) GroupOffsets {
	found := GroupOffsets{group: group, at: map[place]Offset{}, refused: map[place]error{}}
	if len(partitions) == 0 {
		return found
	}
	req := kmsg.NewPtrOffsetFetchRequest()
	req.RequireStable = true
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = group
	for topic, ps := range partitions {
		t := kmsg.NewOffsetFetchRequestGroupTopic()
		t.Topic, t.Partitions = topic, ps
		g.Topics = append(g.Topics, t)
	}
	req.Groups = append(req.Groups, g)
	resp, err := req.RequestWith(ctx, c.client)
	switch {
	case err != nil:
		found.err = err
		return found
	case len(resp.Groups) != 1:
		found.err = errors.New("the answer contains no group")
		return found
	}
	err = cmp.Or(kerr.ErrorForCode(resp.ErrorCode), kerr.ErrorForCode(resp.Groups[0].ErrorCode))
	// The group is new, or was empty for so long that the brokers deleted it.
	if errors.Is(err, kerr.GroupIDNotFound) {
		for topic, ps := range partitions {
			for _, p := range ps {
				found.at[place{topic, p}] = Offset{EpochOffset: kgo.EpochOffset{Epoch: -1, Offset: -1}}
			}
		}
		return found
	}
	found.err = err
	for _, t := range resp.Groups[0].Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				found.refused[place{t.Topic, p.Partition}] = err
				continue
			}
			at := Offset{EpochOffset: kgo.EpochOffset{Epoch: p.LeaderEpoch, Offset: p.Offset}}
			if p.Metadata != nil {
				at.Metadata = *p.Metadata
			}
			found.at[place{t.Topic, p.Partition}] = at
		}
	}
	return found
}

// FormerOffsets asks for the offsets of each of groups, names of one group.
func (c *Cluster) FormerOffsets(ctx context.Context, groups []string, partitions map[string][]int32) (all Former) {
	for _, group := range groups {
		all = append(all, c.OffsetsOf(ctx, group, partitions))
	}
	return all
}
