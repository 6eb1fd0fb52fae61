package main

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
)

// bareRead reads a topic from its start to its end, committed records, and
// does nothing with them. Client, connection and all are measured, as they are
// in a summary.
func bareRead(ctx context.Context, j job) (report, error) {
	var m meter
	m.begin()
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
		return report{}, err
	}
	defer cl.Close()
	total := j.Data.records()
	for n := int64(0); n < total; {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return report{}, err
		}
		n += int64(fetches.NumRecords())
	}
	return m.end(total), nil
}
