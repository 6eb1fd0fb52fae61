package main

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"
)

// bareRead reads a topic from its start to its end, committed records, and
// does nothing with them. Client, connection and all are measured, as they are
// in a summary.
func bareRead(ctx context.Context, j job) (report, error) {
	var m meter
	m.begin()
	if err := readAll(ctx, j, func(kgo.Fetches) error { return nil }); err != nil {
		return report{}, err
	}
	return m.end(j.Data.records()), nil
}

// readAll reads a topic for bareRead, and for what does something with it.
func readAll(ctx context.Context, j job, do func(kgo.Fetches) error) error {
	from := map[int32]kgo.Offset{}
	for p := range j.Data.Ends {
		from[int32(p)] = kgo.NewOffset().At(0)
	}
	cl, err := kgo.NewClient(
		kgo.SeedBrokers(j.Seeds...),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{j.Data.Topic: from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	)
	if err != nil {
		return err
	}
	defer cl.Close()
	for n := int64(0); n < j.Data.records(); {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		n += int64(fetches.NumRecords())
		if err := do(fetches); err != nil {
			return err
		}
	}
	return nil
}
