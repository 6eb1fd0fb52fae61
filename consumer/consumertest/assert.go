package consumertest

// The assertions about records, copies and dead letters.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/retrytopics"
)

// Handled waits until the record was handled the given number of times: successfully, by any
// consumer of this Kafka, whatever its group. A higher number fails the test, and so does a want
// below 1: a record that was not handled yet may be handled a moment later.
func (k *Kafka) Handled(r *kgo.Record, want int) {
	k.tb.Helper()
	k.mustBeProduced(r)
	k.siblingsOf(r.Topic)
	if want < 1 {
		k.tb.Fatalf("consumertest: Handled waits for a success, and cannot tell whether record %v will be handled later: assert what becomes of it instead, with Discarded, DeadLettered or Parked", positionOf(r))
	}
	ctx, patience, stop := k.untilFinal(positionOf(r))
	defer stop()
	for {
		n, changed := k.journal.times(positionOf(r))
		switch {
		case n > want:
			k.tb.Fatalf("consumertest: record %v was handled %s, want %d%s", positionOf(r), times(n), want, k.whereabouts(r))
		case n == want:
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			k.tb.Fatalf("consumertest: record %v was handled %s %s, want %d%s", positionOf(r), times(n), waited(ctx, patience), want, k.whereabouts(r))
		}
	}
}

// Discarded waits until a handler or a policy discarded the record with that error class ("" for
// any).
func (k *Kafka) Discarded(r *kgo.Record, class string) {
	k.tb.Helper()
	k.mustBeProduced(r)
	k.siblingsOf(r.Topic)
	ctx, patience, stop := k.untilFinal(positionOf(r))
	defer stop()
	for {
		classes, changed := k.journal.discards(positionOf(r))
		if slices.Contains(classes, class) || class == "" && len(classes) > 0 {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			wanted := ""
			if class != "" {
				wanted = fmt.Sprintf(" with class %q", class)
			}
			k.tb.Fatalf("consumertest: record %v was not discarded%s %s%s", positionOf(r), wanted, waited(ctx, patience), k.whereabouts(r))
		}
	}
}

// Parked waits until a copy of the record with that error class is in the tier's retry topic, and
// returns the content of its headers. The class "" stands for any class.
func (k *Kafka) Parked(r *kgo.Record, tier time.Duration, class string) headers.Meta {
	k.tb.Helper()
	k.mustBeProduced(r)
	s := k.siblingsOf(r.Topic)
	for _, t := range s.tiers {
		if t.Delay == tier {
			return k.copyOf(r, t.Topic, func(m *headers.Meta) error {
				if class != "" && m.Class != class {
					return fmt.Errorf("class %q, want %q", m.Class, class)
				}
				return nil
			})
		}
	}
	k.tb.Fatalf("consumertest: topic %q has no tier of %v; its tiers are %v", r.Topic, tier, delaysOf(s.tiers))
	return headers.Meta{}
}

// DeadLettered waits until the record was written to its dead-letter topic for that reason ("" for
// any), and returns the content of its headers.
func (k *Kafka) DeadLettered(r *kgo.Record, reason headers.Reason) headers.Meta {
	k.tb.Helper()
	k.mustBeProduced(r)
	return k.copyOf(r, k.siblingsOf(r.Topic).dlqs[0], func(m *headers.Meta) error {
		if reason != "" && m.Reason != reason {
			return fmt.Errorf("reason %q, want %q", m.Reason, reason)
		}
		return nil
	})
}

// mustBeProduced fails the test for no record, and for one without a position of its own: position
// 0 of partition 0 is another record's.
func (k *Kafka) mustBeProduced(r *kgo.Record) {
	k.tb.Helper()
	if r == nil {
		k.tb.Fatalf("consumertest: the record is nil: assert about a record that Produce returned")
	}
	// A client sets the context of a record that it produces, and the timestamp of one that it
	// reads.
	if r.Context == nil && r.Timestamp.IsZero() && r.Offset == 0 {
		k.tb.Fatalf("consumertest: this record of topic %q was not produced, so it has no position: assert about a record that Produce returned", r.Topic)
	}
}

func delaysOf(tiers []retrytopics.Tier) (all []time.Duration) {
	for _, t := range tiers {
		all = append(all, t.Delay)
	}
	return all
}

// siblingsOf returns what is known of a source. It fails the test if no consumer was run on it.
func (k *Kafka) siblingsOf(topic string) consumed {
	k.tb.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	s, ok := k.siblings[topic]
	if !ok {
		k.tb.Fatalf("consumertest: no consumer was run on topic %q: Run one before an assertion about its records", topic)
	}
	return s
}

// copyOf waits for a copy of the record on a topic that passes wanted.
func (k *Kafka) copyOf(r *kgo.Record, topic string, wanted func(*headers.Meta) error) (found headers.Meta) {
	k.tb.Helper()
	at := positionOf(r)
	var others []string
	ctx, patience, stop := k.untilFinal(at)
	defer stop()
	look := func(c *kgo.Record) (done bool) {
		m, err := headers.Parse(c.Headers)
		if originalOf(m.Original) != at {
			return false
		}
		if err == nil {
			err = wanted(&m)
		}
		if err != nil {
			others = append(others, fmt.Sprintf("\n  copy %v has another content: %v", positionOf(c), err))
			return false
		}
		found = m
		return true
	}
	err := k.read(ctx, topic, look)
	if errors.Is(context.Cause(ctx), errFinal) {
		// The copy may be there, not read yet.
		others = nil
		var seen bool
		last, cancel := k.within()
		defer cancel()
		if k.scan(last, topic, func(c *kgo.Record, _ headers.Meta) { seen = seen || look(c) }) == nil && seen {
			return found
		}
	}
	if err != nil {
		k.tb.Fatalf("consumertest: no such copy of record %v was written to %s %s%s%s", at, topic, waited(ctx, patience), strings.Join(others, ""), k.whereabouts(r))
	}
	return found
}

// read reads a topic from its start, transaction markers included, until do returns true, or ctx
// ends.
func (k *Kafka) read(ctx context.Context, topic string, do func(*kgo.Record) (done bool)) error {
	cl, err := kgo.NewClient(append(k.Opts(), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.KeepControlRecords())...)
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
