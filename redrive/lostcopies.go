package redrive

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/redrive/internal/permission"
)

// LostCopies are the copies of pending letters that no consumer can have: the source, or the topic
// of the copy, does not have their partition. Reopening these letters processes no record twice,
// unless the partition comes back.
type LostCopies struct {
	sent map[headers.Position]dlq.Entry
	why  map[headers.Position]string
}

// FindLostCopies finds the lost copies of a ledger's pending letters. It changes nothing.
func FindLostCopies(ctx context.Context, cfg Config, ledger *dlq.Ledger) (*LostCopies, error) {
	sent, err := dlq.PendingCopies(ctx, ledger)
	if err != nil {
		return nil, fmt.Errorf("redrive: %w", permission.Denied("READ", "topic", ledger.Name(), err))
	}
	adm, err := client.NewAdmin(cfg.Kafka...)
	if err != nil {
		return nil, fmt.Errorf("redrive: %w", err)
	}
	defer adm.Close()
	c, has := &LostCopies{sent, map[headers.Position]string{}}, map[string]int{}
	for at, e := range sent {
		topics := []string{e.Target.Topic}
		if name, ok := cfg.Naming.Parse(e.Target.Topic); ok {
			topics = append(topics, name.Source)
		}
		for _, topic := range topics {
			n, err := countPartitions(ctx, adm, topic, has)
			if err != nil {
				return nil, fmt.Errorf("redrive: %w", err)
			}
			if int(e.Target.Partition) >= n {
				c.why[at] = fmt.Sprintf("%s has no partition %d", topic, e.Target.Partition)
				break
			}
		}
	}
	return c, nil
}

// countPartitions is partitionsOf, where each topic is asked for once.
func countPartitions(ctx context.Context, adm *kadm.Client, topic string, has map[string]int) (int, error) {
	n, known := has[topic]
	if known {
		return n, nil
	}
	n, err := partitionsOf(ctx, adm, topic)
	if has[topic] = n; n < 0 && err == nil {
		err = &DeniedError{Operation: "DESCRIBE", Resource: "topic", Name: topic}
	}
	return n, err
}

// Has reports whether an entry of a letter names its lost copy. It is what
// [dlq.ReopenOptions].Pending takes.
func (c *LostCopies) Has(letter headers.Position, sent dlq.Entry) bool {
	return c.why[letter] != "" && sent.Target == c.sent[letter].Target
}

// Of returns where the copy of a pending letter is, and why no consumer can have it; empty if one
// can.
func (c *LostCopies) Of(letter headers.Position) (copied headers.Position, why string) {
	return c.sent[letter].Target, c.why[letter]
}
