package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
)

// found is the content of the topics at the end, by order id.
type found struct {
	source  map[string]bool     // on the source
	parked  map[string]int      // copies on retry topics
	waiting map[string]bool     // on the source or a retry topic, not committed
	dead    map[string][]letter // in the dead-letter topic
}

// letter is a dead letter.
type letter struct {
	class    string
	attempts int
	intact   bool // key and value equal the source's, byte for byte
}

// readBack reads the source, the retry topics and the dead-letter topic from their start to their
// end.
func (c *cluster) readBack(ctx context.Context) (found, error) {
	f := found{source: map[string]bool{}, parked: map[string]int{}, waiting: map[string]bool{}, dead: map[string][]letter{}}
	committed, err := c.admin.FetchOffsets(ctx, c.group)
	if err != nil {
		return f, fmt.Errorf("read back: offsets of group %s: %w", c.group, err)
	}
	originals := map[string]*kgo.Record{}
	err = c.scan(ctx, append(c.tierTopics(), c.siblings.Source), func(r *kgo.Record) {
		id := idOf(r)
		if o, ok := committed.Lookup(r.Topic, r.Partition); !ok || r.Offset >= o.At {
			f.waiting[id] = true
		}
		if r.Topic == c.siblings.Source {
			f.source[id] = true
			originals[id] = r
		} else {
			f.parked[id]++
		}
	})
	if err != nil {
		return f, fmt.Errorf("read back: %w", err)
	}
	for l, err := range dlq.Read(ctx, c.siblings.DLQ, dlq.Filter{}, dlq.Cursor{}, c.opts...) {
		if err != nil {
			return f, fmt.Errorf("read back: %w", err)
		}
		id := idOf(l.Record)
		o := originals[id]
		f.dead[id] = append(f.dead[id], letter{
			class: l.Meta.Class, attempts: l.Meta.Attempts,
			intact: l.MetaErr == nil && o != nil && bytes.Equal(o.Key, l.Record.Key) && bytes.Equal(o.Value, l.Record.Value),
		})
	}
	return f, nil
}

// scan reads all records that the topics hold now.
func (c *cluster) scan(ctx context.Context, topics []string, do func(*kgo.Record)) error {
	starts, err := c.admin.ListStartOffsets(ctx, topics...)
	if err = errors.Join(err, starts.Error()); err != nil {
		return err
	}
	ends, err := c.admin.ListEndOffsets(ctx, topics...)
	if err = errors.Join(err, ends.Error()); err != nil {
		return err
	}
	type partition struct {
		topic string
		n     int32
	}
	left := map[partition]int64{}
	from := map[string]map[int32]kgo.Offset{}
	ends.Each(func(end kadm.ListedOffset) {
		start, _ := starts.Lookup(end.Topic, end.Partition)
		if start.Offset == end.Offset {
			return
		}
		left[partition{end.Topic, end.Partition}] = end.Offset
		if from[end.Topic] == nil {
			from[end.Topic] = map[int32]kgo.Offset{}
		}
		from[end.Topic][end.Partition] = kgo.NewOffset().At(start.Offset)
	})
	cl, err := kgo.NewClient(append(c.opts[:len(c.opts):len(c.opts)], kgo.ConsumePartitions(from), kgo.FetchMaxWait(200*time.Millisecond))...)
	if err != nil {
		return err
	}
	defer cl.Close()
	for len(left) > 0 {
		fetches := cl.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			at := partition{r.Topic, r.Partition}
			end, ok := left[at]
			if !ok {
				return
			}
			if r.Offset < end {
				do(r)
			}
			if r.Offset >= end-1 {
				delete(left, at)
			}
		})
	}
	return nil
}
