// Package lost finds redriven letters whose copies no consumer can have: the source, or the topic
// of the copy, lacks the partition.
package lost

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/internal/letters"
	"github.com/sidingkafka/siding/redrive/internal/permission"
	"github.com/sidingkafka/siding/retrytopics"
)

// Copies are the copies of letters by letter, each with the reason why no consumer can have it.
type Copies struct {
	why  map[headers.Position]string
	sent map[headers.Position]dlq.Entry
}

// Find finds the lost copies of a ledger's pending letters.
func Find(ctx context.Context, adm *kadm.Client, naming retrytopics.Naming, ledger *dlq.Ledger) (*Copies, error) {
	sent, err := dlq.PendingCopies(ctx, ledger)
	if err != nil {
		return nil, permission.Denied("READ", "topic", ledger.Name(), err)
	}
	c := &Copies{why: map[headers.Position]string{}, sent: sent}
	topics := partitions{}
	for at, e := range sent {
		why, err := topics.lack(ctx, adm, e.Target.Topic, e.Target.Partition)
		if name, ok := naming.Parse(e.Target.Topic); err == nil && why == "" && ok {
			why, err = topics.lack(ctx, adm, name.Source, e.Target.Partition)
		}
		if err != nil {
			return nil, err
		}
		if why != "" {
			c.why[at] = why
		}
	}
	return c, nil
}

// Narrow makes a filter select only letters with a lost copy. It names the first ten copies.
func (c *Copies) Narrow(f *dlq.Filter, name func(text string)) {
	named, fits := letters.Set{}, f.Match
	f.Match = func(l *dlq.Letter) bool {
		place := letters.At(l.Record.Partition, l.Record.Offset)
		at := place.In(l.Record.Topic)
		why, is := c.why[at]
		if !is || fits != nil && !fits(l) {
			return false
		}
		if named.Len() < maxNamed && named.Add(place) {
			name(fmt.Sprintf("letter %s: its copy is at %s, and %s", at, c.sent[at].Target, why))
		}
		return true
	}
}

// maxNamed is how many copies are named.
const maxNamed = 10

// Is reports whether an entry names the lost copy of a letter.
func (c *Copies) Is(letter headers.Position, e dlq.Entry) bool {
	_, ok := c.why[letter]
	return ok && e.Target == c.sent[letter].Target
}

// partitions are the numbers of partitions of topics.
type partitions map[string]int

// lack says that a topic lacks a partition; empty if it has it.
func (p partitions) lack(ctx context.Context, adm *kadm.Client, topic string, partition int32) (string, error) {
	n, known := p[topic]
	if !known {
		found, err := adm.ListTopics(ctx, topic)
		if d := found[topic]; err == nil && !errors.Is(d.Err, kerr.UnknownTopicOrPartition) {
			err = d.Err
		}
		if err != nil {
			return "", fmt.Errorf("describe topic %q: %w", topic, permission.Denied("DESCRIBE", "topic", topic, err))
		}
		n = len(found[topic].Partitions)
		p[topic] = n
	}
	if int(partition) < n {
		return "", nil
	}
	return fmt.Sprintf("%s has no partition %d", topic, partition), nil
}
