package main

import (
	"bytes"
	"context"
	"fmt"

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
	err = c.each(ctx, append(c.tierTopics(), c.siblings.Source), func(l *dlq.Letter) {
		r, id := l.Record, idOf(l.Record)
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
	if err == nil {
		err = c.each(ctx, []string{c.siblings.DLQ}, func(l *dlq.Letter) {
			id := idOf(l.Record)
			o := originals[id]
			f.dead[id] = append(f.dead[id], letter{
				class: l.Meta.Class, attempts: l.Meta.Attempts,
				intact: l.MetaErr == nil && o != nil && bytes.Equal(o.Key, l.Record.Key) && bytes.Equal(o.Value, l.Record.Value),
			})
		})
	}
	return f, err
}

// each reads all records that the topics hold now. Those that are no dead letters have no headers
// that dlq could read, which does not matter here.
func (c *cluster) each(ctx context.Context, topics []string, do func(*dlq.Letter)) error {
	for _, topic := range topics {
		for l, err := range dlq.Read(ctx, topic, dlq.Filter{}, dlq.Cursor{}, c.opts...) {
			if err != nil {
				return fmt.Errorf("read back: %w", err)
			}
			do(l)
		}
	}
	return nil
}
