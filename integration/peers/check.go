package main

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/integration/peers/internal/work"
)

// A trace is what a run left on the broker.
type trace struct {
	committed, ends []int64     // by partition
	letters         map[int]int // by the record's number: how many there are
}

// check holds a run to what each program promises: all records handled, all offsets committed, each
// failed record in the dead-letter topic, once, and none else.
func check(ctx context.Context, r *rig, j work.Job, rep work.Report) (err error) {
	var t trace
	if t.committed, t.ends, err = r.offsets(ctx, j); err != nil {
		return err
	}
	if t.letters, err = letters(ctx, r, j.DLQ); err != nil {
		return err
	}
	return t.wrong(j, rep)
}

// letters counts the records of a topic by their number.
func letters(ctx context.Context, r *rig, topic string) (map[int]int, error) {
	ends, err := r.ends(ctx, topic)
	if err != nil {
		return nil, err
	}
	from := map[int32]kgo.Offset{}
	for p := range ends {
		from[int32(p)] = kgo.NewOffset().At(0)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(r.seeds...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	found := map[int]int{}
	for left := sum(ends); left > 0; {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("reading %s: %w", topic, err)
		}
		fetches.EachRecord(func(rec *kgo.Record) { found[work.Index(rec.Value)]++ })
		left -= int64(fetches.NumRecords())
	}
	return found, nil
}

// wrong says what a run did wrong.
func (t trace) wrong(j work.Job, rep work.Report) error {
	if healthy := j.Records - j.Failing(); rep.Handled != healthy {
		return fmt.Errorf("lost: %d of %d records were not handled", healthy-rep.Handled, healthy)
	}
	for p, end := range t.ends {
		if t.committed[p] != end {
			return fmt.Errorf("committed offset %d of %d in partition %d", t.committed[p], end, p)
		}
	}
	missing, twice, alien := 0, 0, 0
	for i := range j.Records {
		switch n := t.letters[i]; {
		case n == 0 && j.Fails(i):
			missing++
		case n > 0 && !j.Fails(i):
			alien++
		case n > 1:
			twice++
		}
	}
	switch {
	case missing > 0:
		return fmt.Errorf("lost: %d of %d dead letters are missing", missing, j.Failing())
	case alien > 0:
		return fmt.Errorf("%d healthy records are dead letters", alien)
	case twice > 0:
		return fmt.Errorf("%d dead letters are there more than once", twice)
	case rep.Disorder > 0:
		return fmt.Errorf("%d records began before the last one of their key had ended", rep.Disorder)
	}
	return nil
}
