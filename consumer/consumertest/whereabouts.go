package consumertest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

// whereabouts says, for the message of a failed assertion, what the handler returned for a record
// and where the record was last seen.
func (k *Kafka) whereabouts(of *kgo.Record) string {
	at := positionOf(of)
	return k.whereaboutsOf(at)[at]
}

// whereaboutsOf is whereabouts of several records, which are looked for together. Each text begins
// with a line break.
func (k *Kafka) whereaboutsOf(records ...position) map[position]string {
	// the broker may not answer
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	last := map[position]lastCopy{}
	for _, at := range records {
		last[at] = lastCopy{}
	}
	texts := map[position]string{}
	looked, err := k.findCopies(ctx, last)
	for _, at := range records {
		var b strings.Builder
		b.WriteString(k.journal.lastCall(at))
		switch found := last[at]; {
		case err != nil:
			fmt.Fprintf(&b, "\n  its copies could not be read: %v", err)
		case found.record != nil:
			fmt.Fprintf(&b, "\n  its last copy is %s", found)
		case len(looked[at.topic]) > 0:
			fmt.Fprintf(&b, "\n  no copy of it is in %s", strings.Join(looked[at.topic], ", "))
		}
		texts[at] = b.String()
	}
	return texts
}

// lastCopy is the copy of a record with the most hops.
type lastCopy struct {
	record *kgo.Record
	meta   headers.Meta
}

func (c lastCopy) String() string {
	m := c.meta
	parts := []string{fmt.Sprintf("attempts %d", m.Attempts), "class " + m.Class}
	if m.Reason != "" {
		parts = append(parts, "reason "+string(m.Reason))
	}
	if !m.NotBefore.IsZero() {
		due := "due at " + m.NotBefore.UTC().Format("2006-01-02 15:04:05.000")
		if left := time.Until(m.NotBefore); left > 0 {
			due += ", in " + left.String()
		}
		parts = append(parts, due)
	}
	return fmt.Sprintf("%v (%s): %s", positionOf(c.record), strings.Join(parts, ", "), m.Message)
}

// findCopies finds the last copies of the records that are the keys of last. It returns the topics
// in which it looked, by source.
func (k *Kafka) findCopies(ctx context.Context, last map[position]lastCopy) (looked map[string][]string, err error) {
	looked = map[string][]string{}
	for at := range last {
		if _, done := looked[at.topic]; done {
			continue
		}
		k.mu.Lock()
		s := k.siblings[at.topic]
		k.mu.Unlock()
		looked[at.topic] = nil
		for _, tier := range s.tiers {
			looked[at.topic] = append(looked[at.topic], tier.Topic)
		}
		looked[at.topic] = append(looked[at.topic], s.dlqs...)
		for _, topic := range looked[at.topic] {
			if err := k.scan(ctx, topic, func(r *kgo.Record, m headers.Meta) {
				if found, wanted := last[originalOf(m.Original)]; wanted && (found.record == nil || m.Hops >= found.meta.Hops) {
					last[originalOf(m.Original)] = lastCopy{r, m}
				}
			}); err != nil {
				return looked, fmt.Errorf("%s: %w", topic, err)
			}
		}
	}
	return looked, nil
}

// call is the last call of the handler for a record.
type call struct {
	times   int
	attempt int
	at      position // where this delivery was read
	ended   string   // what it returned; empty while it runs
}

// lastCall says what the handler did with a record.
func (j *journal) lastCall(at position) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	c := j.calls[at]
	if c == nil {
		return "\n  the handler was not called with it"
	}
	ended := "still runs"
	if c.ended != "" {
		ended = c.ended
	}
	text := fmt.Sprintf("\n  the handler was called with it %s; the last call, attempt %d from %v, %s", times(c.times), c.attempt, c.at, ended)
	if classes := j.discarded[at]; len(classes) > 0 {
		text += fmt.Sprintf("\n  it was discarded %s, class %s", times(len(classes)), strings.Join(classes, ", "))
	}
	return text
}

// times returns "once" or "3 times".
func times(n int) string {
	switch n {
	case 0:
		return "0 times"
	case 1:
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
