package redrive

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/sidingkafka/siding/redrive/internal/permission"
)

// Where topics begin and end is known of all partitions or it is an error: a partition that could not tell would be taken for one from
// which nothing expired, or on which nothing is old.

// starts are where those topics begin that exist.
func starts(ctx context.Context, adm *kadm.Client, names []string) (kadm.ListedOffsets, error) {
	listed, err := adm.ListStartOffsets(ctx, names...)
	return listed, known("start", listed, err)
}

// ends are the high watermarks of topics, each of which there must be: of what is left out nothing would be read.
func ends(ctx context.Context, adm *kadm.Client, names []string) (positions, error) {
	at, err := endsOfThoseLeft(ctx, adm, names)
	for _, name := range names {
		if err == nil && at[name] == nil {
			err = fmt.Errorf("list end offsets of %s: %w", name, kerr.UnknownTopicOrPartition)
		}
	}
	return at, err
}

// endsOfThoseLeft are the high watermarks of those topics that exist.
func endsOfThoseLeft(ctx context.Context, adm *kadm.Client, names []string) (positions, error) {
	listed, err := adm.ListEndOffsets(ctx, names...)
	if err = known("end", listed, err); err != nil {
		return nil, err
	}
	at := positions{}
	listed.Each(func(o kadm.ListedOffset) {
		if o.Err == nil {
			at.set(o.Topic, o.Partition, o.Offset)
		}
	})
	return at, nil
}

// known makes sure that all was told, but for topics that do not exist.
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
