package consumer

import (
	"context"
	"net"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/clock"
	"github.com/sidingkafka/siding/consumer/internal/offsets"
)

// idle is a consumer with the machinery of a running one, and a broker that never answers.
func idle(t *testing.T, cfg Config, ran func()) *Consumer {
	t.Helper()
	cfg.Group, cfg.Topics, cfg.Kafka = "billing", []string{"orders"}, []kgo.Opt{kgo.SeedBrokers("localhost:1")}
	cfg.Handler = func(context.Context, *kgo.Record) error {
		ran()
		return nil
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	silence := kgo.Dialer(func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	c.producer.Open = func() (*kgo.Client, error) {
		return kgo.NewClient(silence, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	}
	life, end := context.WithCancel(context.Background())
	t.Cleanup(func() {
		end()
		c.workers.Wait()
		c.wg.Wait()
		c.producer.Close()
	})
	c.ctx, c.stop, c.values = life, life, life
	c.tierBudget = newTierBudget(c.cfg.MaxParkedBytes, &c.retryPauser, c.lanesNow)
	c.clock = clock.New(&c.wg, life.Done(), func() {})
	c.workerPool = &workerPool{limit: c.cfg.Concurrency, wg: &c.workers, run: c.runUnit, clock: c.clock}
	return c
}

// held gives the consumer a running lane under a membership.
func held(c *Consumer, partition int32, member string) *lane {
	l := c.newLane("orders", partition, member)
	l.source().tracker = offsets.New(0, 0)
	l.intake = intakeOpen
	c.mu.Lock()
	c.lanes[topicPartition{"orders", partition}] = l
	c.countLanes()
	c.mu.Unlock()
	l.run()
	return l
}
