package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"runtime"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/retrytopics"
)

// letters are dead letters of a topic that was never written to: only their headers name it.
type letters struct {
	data                  // the dead-letter topic
	source, group, ledger string
	id, dlqID             kadm.TopicID // of the source and of the dead-letter topic
}

// faults is the number of kinds of failure among the letters, in five classes.
const faults = 50

// writeLetters writes n dead letters beside a source topic of eight partitions, with the headers
// that siding writes after four attempts. The letters are of one record in forty, as after an
// incident.
func writeLetters(ctx context.Context, r *rig, label string, n int) (letters, error) {
	const partitions = 8
	source, err := r.topic(ctx, label, partitions)
	if err != nil {
		return letters{}, err
	}
	l := letters{source: source, group: r.group(label, 0)}
	siblings, err := retrytopics.Naming{}.Siblings(source, l.group)
	if err != nil {
		return letters{}, err
	}
	if _, err := retrytopics.Ensure(ctx, r.admin, retrytopics.Spec{}, siblings); err != nil {
		return letters{}, err
	}
	topics, err := r.admin.ListTopics(ctx, source, siblings.DLQ)
	if err != nil {
		return letters{}, fmt.Errorf("looking up %s: %w", source, err)
	}
	l.ledger, l.id, l.dlqID = siblings.Ledger, topics[source].ID, topics[siblings.DLQ].ID
	l.data = data{Topic: siblings.DLQ, Ends: make([]int64, partitions)}
	return l, r.write(ctx, l.stories(n), kgo.ProducerBatchMaxBytes(64<<10))
}

// stories are the records of the letters.
func (l *letters) stories(n int) func(yield func(*kgo.Record) bool) {
	const every = 40 // record that failed, by its offset
	host, _ := os.Hostname()
	return func(yield func(*kgo.Record) bool) {
		var (
			encoder headers.Encoder
			begun   = time.Now().Add(-time.Hour)
			draw    = rand.New(rand.NewPCG(1, 1))
		)
		for i := range n {
			p := int32(i % len(l.Ends))
			fault := draw.IntN(faults)
			at := begun.Add(time.Duration(i) * time.Millisecond / 10).Truncate(time.Millisecond)
			class := fmt.Sprintf("orders.fault%d", fault%5)
			m := headers.Meta{
				Original: headers.Position{Topic: l.source, TopicID: l.id, Partition: p, Offset: l.Ends[p] * every, Timestamp: at},
				Group:    l.group, Attempts: 4, Class: class, Fingerprint: fmt.Sprintf("%016x", 0x9e3779b97f4a7c15*uint64(fault+1)),
				Message: fmt.Sprintf("order %d: the warehouse of fault %d has no such item", i, fault),
				Reason:  headers.ReasonExhausted, FirstFailedAt: at, FailedAt: at.Add(6 * time.Minute), Hops: 4, Host: host,
			}
			for a := range 4 {
				m.History = append(m.History, headers.Attempt{Number: a + 1, Class: class, At: at.Add(time.Duration(a) * time.Minute)})
			}
			if !yield(l.record(p, i, i, encoder.Append(&m, nil))) {
				return
			}
		}
	}
}

// writeDiscards writes into the ledger that the first n letters were discarded.
func writeDiscards(ctx context.Context, r *rig, l letters, n int) error {
	return r.write(ctx, func(yield func(*kgo.Record) bool) {
		e := dlq.Entry{TopicID: l.dlqID, State: dlq.Discarded, At: time.Now(), By: "bench", Why: "to be passed over"}
		for i := range n {
			if !yield(e.Record(l.ledger, int32(i%len(l.Ends)), int64(i/len(l.Ends)))) {
				return
			}
		}
	}, kgo.ProducerBatchMaxBytes(64<<10))
}

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
