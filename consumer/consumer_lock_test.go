package consumer

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

// lockProbe is a logger that notes the lines during which a lane or the table is locked.
type lockProbe struct {
	slog.Handler
	c      *Consumer
	said   []string
	locked []string
}

func (p *lockProbe) Enabled(context.Context, slog.Level) bool { return true }
func (p *lockProbe) WithAttrs([]slog.Attr) slog.Handler       { return p }
func (p *lockProbe) WithGroup(string) slog.Handler            { return p }

func (p *lockProbe) Handle(_ context.Context, r slog.Record) error {
	p.said = append(p.said, r.Message)
	if !p.c.mu.TryLock() {
		p.locked = append(p.locked, "the table: "+r.Message)
		return nil
	}
	for _, l := range p.c.lanes {
		if !l.mu.TryLock() {
			p.locked = append(p.locked, l.String()+": "+r.Message)
			continue
		}
		l.mu.Unlock()
	}
	p.c.mu.Unlock()
	return nil
}

// A logger that asks for the consumer's health waited for ever: lines were written with the lane's
// lock held, and with the table's.
func TestConsumer_LogsNothingUnderALock(t *testing.T) {
	t.Parallel()
	probe := &lockProbe{}
	c := idle(t, Config{Logger: slog.New(probe)}, func() {})
	probe.c = c
	c.retryPoll = newRetryPoll(c, nil)
	l := held(c, 0, "m")
	l.mu.Lock()
	l.forwards.outstanding = 2
	l.mu.Unlock()
	copyTo := func(topic string) *forward {
		return &forward{Context: l.abandon, feed: l.source(), offset: 3, rec: kgo.Record{Topic: topic}, note: topic == l.siblings.Ledger}
	}
	l.arrived(copyTo(l.siblings.DLQ), kerr.TopicAuthorizationFailed)
	note := copyTo(l.siblings.Ledger)
	note.tries = noteTries
	l.arrived(note, kerr.UnknownTopicOrPartition)
	meta := headers.Meta{Original: headers.Position{Topic: "orders"}, Group: "shipping", Attempts: 1, Class: "busy", FirstFailedAt: time.Now(), FailedAt: time.Now(), NotBefore: time.Now(), Hops: 1}
	var enc headers.Encoder
	l.tiers()[0].offerTier([16]byte{}, []*kgo.Record{{Topic: l.tiers()[0].topic, Headers: enc.Append(&meta, nil)}})
	c.recheckLater([]outOfRange{{at: topicPartition{"orders", 0}}}, errors.New("no broker"), func([]outOfRange) {})
	for _, want := range []string{"a copy was refused", "the ledger could not be told", "another group shares", "trying again"} {
		if !strings.Contains(strings.Join(probe.said, "\n"), want) {
			t.Errorf("nothing was said of it: %s", want)
		}
	}
	l.beginDrain() // no copy is tried again
	for _, line := range probe.locked {
		t.Errorf("said under a lock, of %s", line)
	}
}
