package bounds

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/sidingkafka/siding/redrive/internal/permission"
)

// Every function returns an answer for all partitions or an error. A partition without an answer
// would look like one from which nothing expired, or on which no record is old.

// Starts returns the start offsets of the topics that exist.
func Starts(ctx context.Context, adm *kadm.Client, names []string) (kadm.ListedOffsets, error) {
	listed, err := adm.ListStartOffsets(ctx, names...)
	return listed, known("start", listed, err)
}

// Ends returns the high watermarks of topics. A missing topic is an error, because none of its
// records would be read.
func Ends(ctx context.Context, adm *kadm.Client, names []string) (Positions, error) {
	at, err := EndsOfExisting(ctx, adm, names)
	for _, name := range names {
		if err == nil && at[name] == nil {
			err = fmt.Errorf("list end offsets of %s: %w", name, kerr.UnknownTopicOrPartition)
		}
	}
	return at, err
}

// EndsOfExisting returns the high watermarks of the topics that exist.
func EndsOfExisting(ctx context.Context, adm *kadm.Client, names []string) (Positions, error) {
	listed, err := adm.ListEndOffsets(ctx, names...)
	if err = known("end", listed, err); err != nil {
		return nil, err
	}
	at := Positions{}
	listed.Each(func(o kadm.ListedOffset) {
		if o.Err == nil {
			at.Set(o.Topic, o.Partition, o.Offset)
		}
	})
	return at, nil
}

// known returns an error unless all partitions of existing topics have an offset.
func known(what string, listed kadm.ListedOffsets, err error) error {
	if err != nil {
		return fmt.Errorf("list %s offsets: %w", what, err)
	}
	listed.Each(func(o kadm.ListedOffset) {
		if o.Err == nil || err != nil || o.Partition < 0 && errors.Is(o.Err, kerr.UnknownTopicOrPartition) {
			return
		}
		err = fmt.Errorf("list %s offsets of %s/%d: %w", what, o.Topic, o.Partition, permission.Denied("DESCRIBE", "topic", o.Topic, o.Err))
	})
	return err
}

// Positions are offsets by topic and partition.
type Positions map[string]map[int32]int64

// Set sets the offset of a partition.
func (p Positions) Set(topic string, partition int32, at int64) {
	if p[topic] == nil {
		p[topic] = map[int32]int64{}
	}
	p[topic][partition] = at
}
