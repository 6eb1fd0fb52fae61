package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/headers"
)

// story writes the live lines, each with the seconds since the first order. It is safe for
// concurrent use.
type story struct {
	mu    sync.Mutex
	w     io.Writer
	start time.Time
}

func (s *story) at(t time.Time) string { return fmt.Sprintf("%.2fs", t.Sub(s.start).Seconds()) }

func (s *story) line(who, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.w, "%7s  %-11s %s\n", s.at(time.Now()), who, fmt.Sprintf(format, args...))
}

// retried reports a retry that succeeded.
func (s *story) retried(id string, f consumer.Delivery, late time.Duration) {
	s.line(id, "handled on attempt %d, from the %v tier, %v after it was due", f.Attempt, f.Tier, late.Round(time.Millisecond))
}

// follow reads the retry topics and the dead-letter topic until ctx ends, and writes a line for
// each copy.
func (s *story) follow(ctx context.Context, c *cluster, dead func(id string)) error {
	cl, err := kgo.NewClient(append(c.opts[:len(c.opts):len(c.opts)], kgo.ConsumeTopics(append(c.tierTopics(), c.siblings.DLQ)...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(200*time.Millisecond))...)
	if err != nil {
		return err
	}
	defer cl.Close()
	for ctx.Err() == nil {
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			id := idOf(r)
			m, err := headers.Parse(r.Headers)
			switch {
			case err != nil:
				s.line(id, "copy with broken headers on %s: %v", r.Topic, err)
			case m.Reason != "":
				s.line(id, "failed: %s → %s (%s, %s)", fault(m), r.Topic, m.Reason, attempts(m.Attempts))
			default:
				s.line(id, "failed: %s → %s, due at %s", fault(m), r.Topic, s.at(m.NotBefore))
			}
			if r.Topic == c.siblings.DLQ {
				dead(id)
			}
		})
	}
	return nil
}

// healthy writes once a second, until ctx ends, how long the orders took that did not fail.
func (s *story) healthy(ctx context.Context, j *journal) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if l := j.lately(); len(l) > 0 {
			s.line("──", "%d healthy orders in this second, from produced to handled %s median, %s at most",
				len(l), millis(quantile(l, 0.5)), millis(l[len(l)-1]))
		}
	}
}

func millis(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }

func attempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}

// fault returns the class of a record's last error, and as much of the message as fits on the line.
func fault(m headers.Meta) string {
	message, _, _ := strings.Cut(m.Message, "\n")
	for _, prefix := range []string{m.Class + ": ", "panic: "} {
		message = strings.TrimPrefix(message, prefix)
	}
	room := max(16, 46-len(m.Class))
	if r := []rune(message); len(r) > room {
		message = string(r[:room-1]) + "…"
	}
	return fmt.Sprintf("%s (%s)", m.Class, message)
}
