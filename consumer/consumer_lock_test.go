package consumer

import (
	"context"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/cluster"
	"github.com/sidingkafka/siding/consumer/internal/forward"
	"github.com/sidingkafka/siding/headers"
)

// lockProbe is a logger that records the lines that are logged under the lock of a lane or of the
// table.
type lockProbe struct {
	slog.Handler
	c      *Consumer
	mu     sync.Mutex
	logged []string
	locked []string
}

func (p *lockProbe) Enabled(context.Context, slog.Level) bool { return true }
func (p *lockProbe) WithAttrs([]slog.Attr) slog.Handler       { return p }
func (p *lockProbe) WithGroup(string) slog.Handler            { return p }

func (p *lockProbe) Handle(_ context.Context, r slog.Record) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.logged = append(p.logged, r.Message)
	if !comesFree(&p.c.mu) {
		p.locked = append(p.locked, "the table: "+r.Message)
		return nil
	}
	for _, l := range p.c.lanes {
		if !comesFree(&l.mu) {
			p.locked = append(p.locked, l.String()+": "+r.Message)
			continue
		}
		l.mu.Unlock()
	}
	p.c.mu.Unlock()
	return nil
}

// comesFree locks mu, unless the goroutine that logs holds it. Others hold it for a moment only.
func comesFree(mu *sync.Mutex) bool {
	for range 10_000 {
		if mu.TryLock() {
			return true
		}
		runtime.Gosched()
	}
	return false
}

// A logger that asked for the consumer's health waited for ever: lines were logged under a lane's
// lock, and under the table's.
func TestConsumer_LogsNothingUnderALock(t *testing.T) {
	virtual(t, func(t *testing.T) {
		probe := &lockProbe{}
		c := idle(t, Config{Logger: slog.New(probe)}, func() {})
		probe.c = c
		c.retryPoll = newRetryPoll(c, nil)
		silent, err := c.copyClients.Client()
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
		writeWith(c, func() (*kgo.Client, error) { return nil, kerr.UnknownTopicOrPartition })
		l := held(c, 0, "m")
		l.copies.Send(forward.NewCopy(&l.source.feed, 3, kgo.Record{Topic: l.siblings.DLQ}))
		l.copies.Send(forward.NewNote(&l.source.feed, 4, kgo.Record{Topic: l.siblings.Ledger}, false))
		time.Sleep(time.Minute) // then a note is given up that no ledger takes
		meta := headers.Meta{Original: headers.Position{Topic: "orders"}, Group: "shipping", Attempts: 1, Class: "busy", FirstFailedAt: time.Now(), FailedAt: time.Now(), NotBefore: time.Now(), Hops: 1}
		var enc headers.Encoder
		l.tiers()[0].takePolled([16]byte{}, []*kgo.Record{{Topic: l.tiers()[0].topic, Headers: enc.Append(&meta, nil)}}, 0)
		c.cluster, c.sourcePauser.client = cluster.New(silent), silent
		c.move([]outOfRange{{at: topicPartition{"orders", 0}, feed: &l.source.feed}}, c.source)
		time.Sleep(offsetsTimeout)
		synctest.Wait()
		probe.mu.Lock()
		defer probe.mu.Unlock()
		for _, want := range []string{"a copy was refused", "the ledger could not be written", "another group shares", "trying again"} {
			if !strings.Contains(strings.Join(probe.logged, "\n"), want) {
				t.Errorf("nothing was logged of it: %s", want)
			}
		}
		l.beginDrain() // no copy is tried again
		for _, line := range probe.locked {
			t.Errorf("logged under a lock, of %s", line)
		}
	})
}
