package consumer_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/consumer/internal/offsets"
	"github.com/sidingkafka/siding/internal/cases"
)

// leaveOver produces n records that fail for good, each before one that fails for nothing, and
// commits as an owner does that had finished only the latter.
func leaveOver(t *testing.T, k *consumertest.Kafka, n int) (bad []*kgo.Record) {
	t.Helper()
	var finished offsets.Metadata
	for i, key := range keysAmong(0, 2, n) {
		i := int64(i)
		bad = append(bad, k.Produce(&kgo.Record{Topic: "orders", Key: key, Value: []byte("bad")})...)
		k.Produce(&kgo.Record{Topic: "orders", Key: key, Value: []byte("finished")})
		finished.Finished = append(finished.Finished, offsets.Span{First: 2*i + 1, Last: 2*i + 1})
	}
	admin(t, k, func(ctx context.Context, cl *kadm.Client) error {
		var at kadm.Offsets
		at.Add(kadm.Offset{Topic: "orders", Partition: 0, At: 0, LeaderEpoch: 0, Metadata: finished.Encode(0, 4096)})
		return cl.CommitAllOffsets(ctx, "billing", at)
	})
	return bad
}

// fineOn produces n records of one of two partitions, all with keys that no other record has.
func fineOn(k *consumertest.Kafka, partition, n int) (all []*kgo.Record) {
	for _, key := range keysAmong(partition, 2, 1000)[1000-n:] {
		all = append(all, k.Produce(&kgo.Record{Topic: "orders", Key: key, Value: []byte("fine")})...)
	}
	return all
}

// The records that an owner left between those that it finished are mostly records that fail:
// their copies were not safe. That is no outage.
func TestLane_BreakerLeftoversDoNotOpenIt(t *testing.T) {
	each(t, cases.Cross(orders, map[string]bool{"one leader": false, "a later leader": true}), 1, func(t *testing.T, k *consumertest.Kafka, c cases.Pair[consumer.Order, bool]) {
		leaveOver(t, k, 300)
		if c.B {
			// What it has read says nothing of what the earlier one had.
			if err := k.Cluster.MoveTopicPartition("orders", 0, 0); err != nil {
				t.Fatal(err)
			}
			fineOn(k, 0, 1)
		}
		cfg := withBreaker(&service{})
		cfg.Order = c.A
		handled, opened := watch(&cfg), &changes{}
		cfg.Hooks = append(cfg.Hooks, opened)
		k.Run(cfg)
		records := fineOn(k, 0, 100)
		time.Sleep(10 * time.Second)
		for _, r := range records {
			if !handled(r) {
				t.Fatalf("offset %d has not run: %s", r.Offset, said(k, "orders", 0))
			}
		}
		if all := opened.list(); len(all) > 0 {
			t.Errorf("the breaker's changes: %q", all)
		}
	})
}

// An outage opened the breaker before the leftovers of a lane ran. The probes take others.
func TestLane_BreakerProbesBeyondLeftovers(t *testing.T) {
	cases.Skip(t)
	each(t, orders, 2, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		bad := leaveOver(t, k, 600)
		fineOn(k, 1, 100)
		records := fineOn(k, 0, 100)
		s, began, opened := &service{}, time.Now(), &changes{}
		s.down.Store(true)
		cfg := withBreaker(s)
		cfg.Order = order
		cfg.Handler = func(ctx context.Context, r *kgo.Record) error {
			switch {
			case r.Partition == 1:
				return errors.New("no such table") // a dead letter: no retry of it is a probe
			case time.Since(began) < 2*time.Second:
				time.Sleep(2 * time.Second)
			}
			return s.handle(ctx, r)
		}
		handled := watch(&cfg)
		cfg.Hooks = append(cfg.Hooks, opened)
		k.Run(cfg)
		time.Sleep(5 * time.Minute)
		s.down.Store(false)
		time.Sleep(time.Minute)
		for _, r := range records {
			if !handled(r) {
				t.Fatalf("offset %d has not run behind %d leftovers: %q", r.Offset, len(bad), opened.list())
			}
		}
		if want := []string{"orders closed-open", "orders open-ramp", "orders ramp-closed"}; !slices.Equal(opened.list(), want) {
			t.Errorf("the breaker's changes: %q", opened.list())
		}
	})
}

// An outage is seen as soon as without leftovers, though a worker takes records in units.
func TestLane_BreakerCountsBehindLeftovers(t *testing.T) {
	each(t, orders, 1, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		leaveOver(t, k, 2)
		fineOn(k, 0, 250)
		s, routed := &service{}, &copies{}
		s.down.Store(true)
		cfg := withBreaker(s)
		cfg.Order, cfg.Concurrency = order, 1
		cfg.Hooks = []consumer.Hook{routed}
		k.Run(cfg)
		time.Sleep(time.Second)
		if n := routed.parked.Load(); n != 2+100 {
			t.Errorf("%d records went to a tier, want the leftovers and 100", n)
		}
	})
}

// Leftovers that began in the ramp fail when it is over. They count no more than those behind them.
func TestLane_BreakerLeftoversOfTheRampDoNotOpenItAgain(t *testing.T) {
	each(t, map[string]consumer.Order{"key": consumer.OrderKey, "none": consumer.OrderNone}, 2, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		leaveOver(t, k, 600)
		fineOn(k, 1, 100)
		opened := &changes{}
		cfg := withBreaker(&service{})
		cfg.Order, cfg.Concurrency = order, 128
		cfg.Hooks = append(cfg.Hooks, opened)
		cfg.Handler = func(_ context.Context, r *kgo.Record) error {
			switch string(r.Value) {
			case "fine":
				return errors.New("no such table")
			case "bad":
				time.Sleep(5 * time.Second)
				return classify.Retryable(errors.New("timeout"))
			}
			return nil
		}
		k.Run(cfg)
		// leftovers may take all places before
		eventually(t, "the breaker opens", func() bool { return len(opened.list()) == 1 })
		for _, key := range keysAmong(1, 2, 10) {
			k.Produce(&kgo.Record{Topic: "orders", Key: key, Value: []byte("good")})
		}
		time.Sleep(5 * time.Minute)
		if want := []string{"orders closed-open", "orders open-ramp", "orders ramp-closed"}; !slices.Equal(opened.list(), want) {
			t.Errorf("the breaker's changes: %q", opened.list())
		}
	})
}

// Each key of a lane has leftovers in front. The records behind them close the breaker all the
// same.
func TestLane_BreakerProbesBehindLeftoversOfAllKeys(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		var finished offsets.Metadata
		keys := keysAmong(0, 2, 2)
		produce := func(i int, value string) *kgo.Record {
			return k.Produce(&kgo.Record{Topic: "orders", Key: keys[i%2], Value: []byte(value)})[0]
		}
		for i := range 20 {
			produce(i, "bad")
			produce(i, "finished")
			finished.Finished = append(finished.Finished, offsets.Span{First: 2*int64(i) + 1, Last: 2*int64(i) + 1})
		}
		var records []*kgo.Record
		for i := range 100 {
			records = append(records, produce(i, "fine"))
		}
		admin(t, k, func(ctx context.Context, cl *kadm.Client) error {
			var at kadm.Offsets
			at.Add(kadm.Offset{Topic: "orders", Partition: 0, At: 0, LeaderEpoch: 0, Metadata: finished.Encode(0, 4096)})
			return cl.CommitAllOffsets(ctx, "billing", at)
		})
		fineOn(k, 1, 100)
		s, began, opened := &service{}, time.Now(), &changes{}
		cfg := withBreaker(s)
		cfg.Order = consumer.OrderKey
		cfg.Handler = func(ctx context.Context, r *kgo.Record) error {
			switch {
			case r.Partition == 1:
				return errors.New("no such table")
			case time.Since(began) < 2*time.Second:
				time.Sleep(2 * time.Second)
			}
			return s.handle(ctx, r)
		}
		handled := watch(&cfg)
		cfg.Hooks = append(cfg.Hooks, opened)
		k.Run(cfg)
		time.Sleep(20 * time.Minute)
		for _, r := range records {
			if !handled(r) {
				t.Fatalf("offset %d has not run: %q", r.Offset, opened.list())
			}
		}
	})
}

// A log lost its end, with records that an earlier owner had finished out of order. Others stand
// there now. All of them run.
func TestLane_BreakerLeftoversOfALostEnd(t *testing.T) {
	cases.Skip(t)
	each(t, cases.Cross(orders, map[string]bool{"before the start": true, "while it runs": false}), 1, func(t *testing.T, k *consumertest.Kafka, c cases.Pair[consumer.Order, bool]) {
		var finished offsets.Metadata
		for i := range int64(300) {
			finished.Finished = append(finished.Finished, offsets.Span{First: 2*i + 1, Last: 2*i + 1})
		}
		k.Produce(onPartition(0, "old", 100)...)
		admin(t, k, func(ctx context.Context, cl *kadm.Client) error {
			var at kadm.Offsets
			at.Add(kadm.Offset{Topic: "orders", Partition: 0, At: 0, LeaderEpoch: 0, Metadata: finished.Encode(0, 4096)})
			return cl.CommitAllOffsets(ctx, "billing", at)
		})
		s, opened := &service{}, &changes{}
		cfg := withBreaker(s)
		cfg.Order = c.A
		cfg.Hooks = append(cfg.Hooks, opened)
		handled := watch(&cfg)
		move := func() {
			if err := k.Cluster.MoveTopicPartition("orders", 0, 0); err != nil {
				t.Fatal(err)
			}
		}
		if c.B {
			move()
		} else {
			stop(t, k.Run(cfg)) // its commit says of the rest what the first said
			k.Run(cfg)
			time.Sleep(5 * time.Second)
			move()
		}
		s.down.Store(true)
		records := fineOn(k, 0, 500)
		if c.B {
			k.Run(cfg)
		}
		time.Sleep(time.Minute)
		if len(opened.list()) == 0 {
			t.Error("the outage opened no breaker: the new records count as leftovers")
		}
		s.down.Store(false)
		time.Sleep(30 * time.Minute)
		for _, r := range records {
			if !handled(r) {
				t.Fatalf("offset %d has not run: %s", r.Offset, said(k, "orders", 0))
			}
		}
	})
}

// A source with leftovers and suspects is deleted and recreated while it is consumed.
func TestLane_BreakerLeftoversOfARecreatedSource(t *testing.T) {
	each(t, cases.Cross(cases.Cross(orders, balancers), map[string]string{"leftovers": "", "suspects": "n=2 s=40 g=ACg b=qqqqqg"}), 1, func(t *testing.T, k *consumertest.Kafka, c cases.Pair[cases.Pair[consumer.Order, []kgo.Opt], string]) {
		bad := leaveOver(t, k, 20)
		if c.B != "" {
			left(t, k, "orders", 0, c.B)
		}
		release := make(chan struct{})
		var done ran
		cfg := config(done.after(func(ctx context.Context, r *kgo.Record) error {
			if string(r.Value) == "bad" {
				select {
				case <-release:
				case <-ctx.Done():
				}
				return ctx.Err()
			}
			return nil
		}))
		cfg.Order, cfg.Kafka = c.A.A, c.A.B
		first := k.Run(cfg)
		time.Sleep(10 * time.Second)
		_ = bad
		k.DeleteTopic("orders")
		k.CreateTopic("orders", 1)
		done.reset()
		records := k.Produce(many(60)...)
		done.all(t, records)
		close(release)
		time.Sleep(time.Minute)
		stop(t, first)
		more := k.Produce(many(10)...)
		k.Run(cfg)
		done.all(t, more)
		holds(t, k, "orders.dlq", 0)
	})
}
