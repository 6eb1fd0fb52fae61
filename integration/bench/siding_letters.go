package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
)

// sidingSummary counts the open letters of a topic, as the verb does, including the reading of the
// ledger. The heap is measured when the summary is complete, while its working memory still exists.
func sidingSummary(ctx context.Context, j job) (report, error) {
	var m meter
	m.begin()
	l := dlq.NewLedger(j.Data.Topic, j.Ledger, kgo.SeedBrokers(j.Seeds...))
	s, err := l.Summarize(ctx, dlq.Filter{}, dlq.Cursor{}, nil)
	if err != nil {
		return report{}, err
	}
	rep := m.end(s.Open)
	if want := j.Data.records() - int64(j.Resolved); s.Open != want || s.Resolved != int64(j.Resolved) || len(s.Failures) != faults {
		return report{}, fmt.Errorf("the summary has %d open letters, want %d, and %d resolved ones, want %d, of %d faults, want %d",
			s.Open, want, s.Resolved, j.Resolved, len(s.Failures), faults)
	}
	rep.Records = j.Data.records()
	var mem runtime.MemStats
	runtime.GC()
	// The first collection leaves the content of pools and finalizers.
	runtime.GC()
	runtime.ReadMemStats(&mem)
	rep.HeapInuse = mem.HeapInuse
	runtime.KeepAlive(l)
	runtime.KeepAlive(s)
	return rep, nil
}

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
