package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
)

// sidingList measures the time of the verb list to its first row, from the first connection on: it
// freezes the topic's bounds, reads the ledger if only open letters are wanted, and reads the topic
// up to such a letter.
func sidingList(ctx context.Context, j job) (report, error) {
	var m meter
	m.begin()
	opts := []kgo.Opt{kgo.SeedBrokers(j.Seeds...)}
	bounds, err := dlq.Freeze(ctx, j.Data.Topic, opts...)
	if err != nil {
		return report{}, err
	}
	var found iter.Seq2[*dlq.Letter, error]
	if j.Resolved == 0 {
		found = dlq.Read(ctx, j.Data.Topic, dlq.Filter{}, bounds, opts...)
	} else {
		l := dlq.NewLedger(j.Data.Topic, j.Ledger, opts...)
		if err := l.Read(ctx, nil, nil); err != nil {
			return report{}, err
		}
		found = l.Letters(ctx, dlq.Filter{}, bounds, dlq.OpenOnly)
	}
	for letter, err := range found {
		if err != nil {
			return report{}, err
		}
		rep := m.end(1)
		if open := j.Resolved / len(j.Data.Ends); letter.Record.Offset != int64(open) {
			return report{}, fmt.Errorf("the first row is of %d/%d, want one of offset %d", letter.Record.Partition, letter.Record.Offset, open)
		}
		rep.P50 = rep.Seconds * float64(time.Second/time.Millisecond)
		return rep, nil
	}
	return report{}, errors.New("there is no row")
}
