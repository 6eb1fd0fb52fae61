package consumertest

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

// Handled waits until the record was handled the given number of times: successfully, by any
// consumer of this Kafka. A higher number fails the test.
func (k *Kafka) Handled(r *kgo.Record, times int) {
	k.tb.Helper()
	deadline := time.After(k.Patience)
	for {
		n, changed := k.journal.times(positionOf(r))
		switch {
		case n > times:
			k.tb.Fatalf("consumertest: record %v was handled %d times, want %d", positionOf(r), n, times)
		case n == times:
			return
		}
		select {
		case <-changed:
		case <-deadline:
			k.tb.Fatalf("consumertest: record %v was handled %d times within %v, want %d", positionOf(r), n, k.Patience, times)
		}
	}
}

// Parked waits until a copy of the record with that error class is in the tier's retry topic, and
// returns the content of its headers. The class "" stands for any class.
func (k *Kafka) Parked(r *kgo.Record, tier time.Duration, class string) headers.Meta {
	k.tb.Helper()
	s := k.siblingsOf(r.Topic)
	for _, t := range s.tiers {
		if t.Delay == tier {
			return k.copyOf(r, t.Topic, func(m *headers.Meta) error {
				if class != "" && m.Class != class {
					return fmt.Errorf("with class %q, want %q", m.Class, class)
				}
				return nil
			})
		}
	}
	k.tb.Fatalf("consumertest: topic %q has no tier of %v, only %v", r.Topic, tier, s.tiers)
	return headers.Meta{}
}

// DeadLettered waits until the record was written to its dead-letter topic for that reason ("" for
// any), and returns the content of its headers.
func (k *Kafka) DeadLettered(r *kgo.Record, reason headers.Reason) headers.Meta {
	k.tb.Helper()
	return k.copyOf(r, k.siblingsOf(r.Topic).dlqs[0], func(m *headers.Meta) error {
		if reason != "" && m.Reason != reason {
			return fmt.Errorf("with reason %q (class %q, %q), want %q", m.Reason, m.Class, m.Message, reason)
		}
		return nil
	})
}

func (k *Kafka) siblingsOf(topic string) consumed {
	k.tb.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	s, ok := k.siblings[topic]
	if !ok {
		k.tb.Fatalf("consumertest: no consumer was run on topic %q", topic)
	}
	return s
}

// copyOf waits for a copy of the record on a topic that passes wanted.
func (k *Kafka) copyOf(r *kgo.Record, topic string, wanted func(*headers.Meta) error) (found headers.Meta) {
	k.tb.Helper()
	at := positionOf(r)
	var others []error
	ctx, cancel := k.within()
	defer cancel()
	err := k.read(ctx, topic, func(c *kgo.Record) (done bool) {
		m, err := headers.Parse(c.Headers)
		if originalOf(m.Original) != at {
			return false
		}
		if err == nil {
			err = wanted(&m)
		}
		if err != nil {
			others = append(others, err)
			return false
		}
		found = m
		return true
	})
	if err != nil {
		k.tb.Fatalf("consumertest: no such copy of record %v on %s within %v; others: %v", at, topic, k.Patience, others)
	}
	return found
}

// read reads a topic from its start, transaction markers included, until do returns true, or ctx
// ends.
func (k *Kafka) read(ctx context.Context, topic string, do func(*kgo.Record) (done bool)) error {
	cl, err := kgo.NewClient(append(k.Opts(), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(200*time.Millisecond), kgo.KeepControlRecords())...)
	if err != nil {
		return err
	}
	defer cl.Close()
	for {
		fetches := cl.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, r := range fetches.Records() {
			if do(r) {
				return nil
			}
		}
	}
}
