package consumer

import (
	"bytes"
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

// A request for a log's bounds holds up the poll loop, and on the retry topics every change of the
// positions. There was one request for each position. So a silent broker held the loop up for 5 s
// for each of its partitions.
func TestConsumerOutOfRange_AsksOnceForAllPositions(t *testing.T) {
	each(t, map[string]bool{"sources": false, "tiers": true}, func(t *testing.T, tiers bool) {
		synctest.Test(t, func(t *testing.T) {
			var log lockedLog
			c := idle(t, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, func() {})
			silent, err := c.copyClients.Client()
			if err != nil {
				t.Fatal(err)
			}
			c.cluster, c.retryPoll = cluster.New(silent), newRetryPoll(c, nil)
			var lost []outOfRange
			for p := range int32(20) {
				l := held(c, p, "m")
				o := outOfRange{at: topicPartition{"orders", p}}
				if f := l.tiers()[int(p)%len(l.tiers())]; tiers {
					o.tier, o.at.topic = f, f.topic
				}
				lost = append(lost, o)
			}
			betweenPolls := c.betweenPolls
			if tiers {
				betweenPolls = c.retryPoll.betweenPolls
			}
			again := func() { time.Sleep(offsetsTimeout) } // on a goroutine of its own
			for round, look := range []func(){func() { c.move(lost, betweenPolls) }, again, again} {
				began := time.Now()
				look()
				if took := time.Since(began); took != offsetsTimeout {
					t.Errorf("round %d: a look at %d positions held the poll loop up for %v, want %v", round, len(lost), took, offsetsTimeout)
				}
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
