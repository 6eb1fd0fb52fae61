package consumer

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidingkafka/siding/consumer/internal/cluster"
)

// kgo sends a broker one request after another. A request that waits behind another one's dial
// ignores its own context. So listing offsets took as long as that dial: 10 s
// with kgo's own dialer, without a bound with a user's.
func TestConsumerOffsets_BoundsComeInTime(t *testing.T) {
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
