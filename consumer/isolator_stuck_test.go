package consumer_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
)

// A suspect whose handler ignores its timeout holds up its own partition only, whether it runs in a
// group or alone, and whether or not the others are suspects. A later death is not charged to it.
func TestIsolator_StuckSuspectHoldsUpNoOtherLane(t *testing.T) {
	each(t, cross(cross(orders, map[string]string{"in groups": "n=2 s=3", "alone": "n=2 s=3 g=AAM"}),
		map[string]string{"others": "", "suspects in groups": "n=2 s=40", "suspects alone": "n=2 s=40 g=ACg"}), 2,
		func(t *testing.T, k *consumertest.Kafka, c pair[pair[consumer.Order, string], string]) {
			guilty, others := k.Produce(onPartition(0, "guilty", 10)...), k.Produce(onPartition(1, "fine", 40)...)
			left(t, k, "orders", 0, c.a.b)
			if c.b != "" {
				left(t, k, "orders", 1, c.b)
			}
			const timeout = 10 * time.Second
			stuck, released := make(chan struct{}), make(chan struct{})
			release := sync.OnceFunc(func() { close(released) })
			defer release()
			var done ran
			cfg := config(done.after(func(_ context.Context, r *kgo.Record) error {
				if r.Partition == 0 && r.Offset == 1 {
					close(stuck)
					<-released
				}
				return nil
			}))
			cfg.Order, cfg.Policy.HandlerTimeout = c.a.a, timeout
			k.Run(cfg)
			<-stuck
			time.Sleep(timeout + 4*time.Second)
			for range 10 {
				others = append(others, k.Produce(onPartition(1, "fine", 10)...)...)
				time.Sleep(time.Second)
			}
			for _, r := range others {
				if done.times(r) == 0 {
					t.Fatalf("%d/%d has not run: %s", r.Partition, r.Offset, said(k, "orders", 1))
				}
			}
			if text := said(k, "orders", 0); strings.Contains(text, " x=") || !strings.Contains(text, " s=2") {
				t.Errorf("the commit says %q, want its record among the suspects, and not alone", text)
			}
			release()
			done.all(t, guilty)
			holds(t, k, "orders.dlq", 0)
			k.Conserved()
		})
}

// A decoder that returns after its record ran alone for too long does not have it named again.
func TestIsolator_StuckDecoderIsNotNamedAgain(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		guilty, others := k.Produce(onPartition(0, "guilty", 10)...), k.Produce(onPartition(1, "fine", 10)...)
		left(t, k, "orders", 0, "n=2 s=3 g=AAM")
		const timeout = 10 * time.Second
		decode, release := make(chan struct{}), make(chan struct{})
		var done ran
		cfg := config(consumer.Decode(func(_ context.Context, r *kgo.Record) (int, error) {
			if r.Partition == 0 && r.Offset == 1 {
				<-decode
			}
			return 0, nil
		}, func(ctx context.Context, r *kgo.Record, _ int) error {
			if r.Partition == 0 && r.Offset == 1 {
				<-release
			}
			return done.after(fine)(ctx, r)
		}))
		cfg.Policy.HandlerTimeout = timeout
		k.Run(cfg)
		eventually(t, "it runs alone", func() bool { return strings.Contains(said(k, "orders", 0), " x=") })
		time.Sleep(timeout + 4*time.Second)
		done.all(t, others)
		close(decode)
		time.Sleep(time.Second)
		if text := said(k, "orders", 0); strings.Contains(text, " x=") {
			t.Errorf("the commit says %q, want the record named no longer", text)
		}
		close(release)
		done.all(t, append(guilty[:1:1], guilty[2:]...))
	})
}

// A handler that ignores a drain has not killed its process: its record is no dead letter.
func TestIsolator_StuckHandlerIsNoDeath(t *testing.T) {
	each(t, balancers, 1, func(t *testing.T, k *consumertest.Kafka, opts []kgo.Opt) {
		records := k.Produce(many(3)...)
		left(t, k, "orders", 0, "n=2 s=3 g=AAM")
		release := make(chan struct{})
		cfg := config(until(release))
		cfg.DrainTimeout = time.Second
		cfg.Kafka = opts
		c := k.Run(cfg)
		eventually(t, "it runs alone", func() bool { return strings.Contains(said(k, "orders", 0), " x=0") })
		_ = c.Err() // a StuckError
		if text := said(k, "orders", 0); strings.Contains(text, " x=") || !strings.Contains(text, " g=") {
			t.Errorf("the commit says %q, want its record among those that run one by one", text)
		}
		close(release)
		var done ran
		cfg.Handler = done.after(fine)
		k.Run(cfg)
		done.all(t, records)
		holds(t, k, "orders.dlq", 0)
	})
}
