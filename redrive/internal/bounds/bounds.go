package bounds

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/redrive/internal/permission"
)

// Every function returns an answer for all partitions or an error. A partition without an answer
// would look like one from which nothing expired, or on which no record is old.

// Starts returns the start offsets of the topics that exist.
func Starts(ctx context.Context, adm *kadm.Client, names []string) (Positions, error) {
	return list(ctx, "start", adm.ListStartOffsets, names)
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
	return list(ctx, "end", adm.ListEndOffsets, names)
}

func list(ctx context.Context, what string, list func(context.Context, ...string) (kadm.ListedOffsets, error), names []string) (Positions, error) {
	listed, err := client.ListOffsets(ctx, list, names...)
	if err != nil {
		return nil, fmt.Errorf("list %s offsets: %w", what, err)
	}
	at := Positions{}
	listed.Each(func(o kadm.ListedOffset) {
		switch {
		case o.Err == nil:
			at.Set(o.Topic, o.Partition, o.Offset)
		case err == nil && (o.Partition >= 0 || !errors.Is(o.Err, kerr.UnknownTopicOrPartition)):
			err = fmt.Errorf("list %s offsets of %s/%d: %w", what, o.Topic, o.Partition, permission.Denied("DESCRIBE", "topic", o.Topic, o.Err))
		}
	})
	return at, err
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
