package consumertest

// Recognizes redriven letters.

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

// broughtBack holds the redriven dead letters of a source. A copy on a retry topic names its
// original record. A copy on the source is a new record, and names the letter.
type broughtBack struct {
	letters map[position]bool     // letters that are where their copy is
	origins map[position]position // by letter: the position of its record
	copies  map[position]position // by copy on the source: its letter
}

// origin returns the position of the produced record of a copy, which may have been redriven to the
// source several times.
func (b *broughtBack) origin(at position) position {
	for range len(b.copies) {
		letter, ok := b.copies[at]
		if !ok {
			break
		}
		at = b.origins[letter]
	}
	return at
}

// findBroughtBack finds the redriven letters of a source.
func findBroughtBack(ctx context.Context, k *Kafka, source string, s consumed) (*broughtBack, error) {
	b := &broughtBack{letters: map[position]bool{}, origins: map[position]position{}, copies: map[position]position{}}
	for _, topic := range s.dlqs {
		if err := b.readLedger(ctx, k, topic, s.ledger[topic]); err != nil {
			return nil, err
		}
	}
	if len(b.letters) == 0 {
		return b, nil
	}
	return b, k.scan(ctx, source, func(r *kgo.Record, m headers.Meta) {
		if letter := originalOf(m.Redrive.From); b.letters[letter] {
			b.copies[positionOf(r)] = letter
		}
	})
}

// readLedger records a ledger's entries about the letters of a dead-letter topic.
func (b *broughtBack) readLedger(ctx context.Context, k *Kafka, topic, name string) error {
	there, err := k.admin.ListTopics(ctx, topic, name)
	if err != nil || there[topic].Err != nil || there[name].Err != nil {
		return err // without a ledger no letter was redriven
	}
	ledger := dlq.NewLedger(topic, name, k.Opts()...)
	if err := ledger.Read(ctx, nil, nil); err != nil {
		return err
	}
	if ledger.Count(dlq.Redriven)+ledger.Count(dlq.Unfollowed)+ledger.Count(dlq.Succeeded)+ledger.Count(dlq.Failed) == 0 {
		return nil
	}
	return k.scan(ctx, topic, func(r *kgo.Record, m headers.Meta) {
		at := positionOf(r)
		b.origins[at] = originalOf(m.Original)
		switch ledger.State(r.Partition, r.Offset) {
		case dlq.Redriven, dlq.Unfollowed, dlq.Succeeded, dlq.Failed:
			b.letters[at] = true
		}
	})
}
