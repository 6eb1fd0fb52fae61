package consumer

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidingkafka/siding/consumer/internal/cluster"
)

// lockedLog is a log that a test can read while it is written.
type lockedLog struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lockedLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// The poll loop awaited the bounds of the logs within its turn: beside a silent broker no lane's
// records came for 5 s of every 6. And one query serves all positions: there was one for each.
func TestConsumerOutOfRange_HoldsUpNoPollBesideASilentBroker(t *testing.T) {
	each(t, map[string]bool{"sources": false, "tiers": true}, func(t *testing.T, tiers bool) {
		synctest.Test(t, func(t *testing.T) {
			var log lockedLog
			c := idle(t, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, func() {})
			silent, err := c.copyClients.Client()
			if err != nil {
				t.Fatal(err)
			}
			c.cluster, c.retryPoll = cluster.New(silent), newRetryPoll(c, nil)
			c.sourcePauser.client, c.retryPauser.client = silent, silent
			turns := c.source
			if tiers {
				turns = c.retryPoll.pollGuard
			}
			var lost []outOfRange
			for p := range int32(20) {
				l := held(c, p, "m")
				o := outOfRange{at: topicPartition{"orders", p}, feed: &l.source.feed}
				if f := l.tiers()[int(p)%len(l.tiers())]; tiers {
					o.tier, o.feed, o.at.topic = f, &f.feed, f.topic
				}
				lost = append(lost, o)
			}
			for round := range 5 {
				began := time.Now()
				_, cancel := turns.begin(t.Context())
				cancel()
				c.move(lost, turns) // each poll reports them
				turns.end()
				if took := time.Since(began); took != 0 {
					t.Errorf("round %d: the poll loop was held up for %v", round, took)
				}
				if n := len(silent.PauseFetchPartitions(nil)); n == 0 {
					t.Error("kgo repeats the fetches meanwhile: they are not paused")
				}
				time.Sleep(offsetsTimeout)
				synctest.Wait()
				if n := strings.Count(log.String(), "positions=20 "); n != round+1 {
					t.Fatalf("round %d: %d looks at all of the positions, want %d:\n%s", round, n, round+1, log.String())
				}
				time.Sleep(time.Second)
				synctest.Wait()
			}
		})
	})
}

// kgo sends a broker one request after another. A request that waits behind another one's dial
// ignores its own context. So listing offsets took as long as that dial: 10 s
// with kgo's own dialer, without a bound with a user's.
func TestConsumerOutOfRange_BoundsComeInTime(t *testing.T) {
	virtual(t, func(t *testing.T) {
		c := idle(t, Config{Logger: slog.New(slog.DiscardHandler)}, func() {})
		silent, err := c.copyClients.Client()
		if err != nil {
			t.Fatal(err)
		}
		c.cluster = cluster.New(silent)
		l := held(c, 0, "m")
		slow, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() { _ = silent.Ping(slow) }()
		synctest.Wait()
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), offsetsTimeout)
		defer cancel()
		if _, err := c.cluster.Bounds(ctx, map[string][]int32{l.topic: {l.partition}}); err == nil {
			t.Error("a broker that never answers said where a log begins")
		}
		if took := time.Since(began); took != offsetsTimeout {
			t.Errorf("the query took %v, want %v", took, offsetsTimeout)
		}
		silent.Close()
	})
}
