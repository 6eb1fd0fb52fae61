package main

import (
	"context"
	"fmt"
	"runtime"

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
