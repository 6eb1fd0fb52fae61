package main

import (
	"context"
	"math"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer"
)

// sidingParked handles records that wait in tiers, and measures how late each record is: from its
// due time to the start of the handler. Records that are offered meanwhile fail once, into the
// first tier.
func sidingParked(ctx context.Context, j job) (report, error) {
	var m meter
	total := 0
	for _, n := range j.Due {
		total += n
	}
	var (
		watch = newStopwatch(total, total)
		eye   = newObserver()
		cfg   = sidingConfig(j)
	)
	cfg.Naming = groupNaming
	cfg.Policy.Tiers = j.Tiers
	cfg.Policy.Breaker.Off = true // every record of the source fails
	cfg.Kafka = append(cfg.Kafka, kgo.WithHooks(eye))
	eye.telemetry.wire(&cfg)
	cfg.Handler = func(ctx context.Context, r *kgo.Record) error {
		now := time.Now()
		facts := consumer.DeliveryOf(ctx, r)
		if facts.Tier == 0 {
			return errUnavailable
		}
		watch.note(index(r), now.Sub(facts.NotBefore))
		return nil
	}
	return trial(ctx, cfg, func(ctx context.Context, c *running) (report, error) {
		m.begin()
		if err := eye.watch(ctx, func() error {
			if err := c.await(ctx, c.Ready()); err != nil {
				return err
			}
			if j.Offered > 0 {
				c.offer(ctx, j)
			}
			return c.await(ctx, watch.done)
		}); err != nil {
			return report{}, err
		}
		rep := m.end(int64(total))
		if err := eye.tell(ctx, &rep); err != nil {
			return report{}, err
		}
		first := 0
		for _, n := range j.Due {
			l := watch.spread(first, first+n)
			rep.Late = append(rep.Late, l)
			rep.P50, rep.P99 = max(rep.P50, l.P50), max(rep.P99, l.P99)
			first += n
		}
		return rep, nil
	})
}

// observeEvery is the interval between measurements of the heap, short enough to see the second in
// which the tiers are read. A measurement runs the collector twice, which the handlers count as
// lateness.
const observeEvery = 300 * time.Millisecond

// An observer measures the memory that a consumer holds, and the bytes that it reads.
type observer struct {
	telemetry *telemetry
	fetched   atomic.Int64
	heap      uint64 // most in use just after a collection
	parked    int64  // most records
}

func newObserver() *observer { return &observer{telemetry: newTelemetry()} }

// OnBrokerRead implements kgo.HookBrokerRead. It sees every answer, including answers to siding's
// own requests.
func (o *observer) OnBrokerRead(_ kgo.BrokerMetadata, key int16, n int, _, _ time.Duration, _ error) {
	if key == int16(kmsg.Fetch) {
		o.fetched.Add(int64(n))
	}
}

// watch measures while the work is done.
func (o *observer) watch(ctx context.Context, work func() error) error {
	return meanwhile(ctx, observeEvery, o.look, work)
}

func (o *observer) look(ctx context.Context) error {
	sums, err := o.telemetry.sums(ctx)
	if err != nil {
		return err
	}
	o.parked = max(o.parked, sums["siding.parked.records"])
	// Memory that is allocated during a collection survives it. While a tier is read that is more
	// than the consumer holds, so a new maximum is measured again.
	least := uint64(math.MaxUint64)
	for try := 0; try < 3 && least > o.heap; try++ {
		var mem runtime.MemStats
		runtime.GC()
		// The first collection leaves the content of pools and finalizers.
		runtime.GC()
		runtime.ReadMemStats(&mem)
		least = min(least, mem.HeapInuse)
	}
	o.heap = max(o.heap, least)
	return nil
}

// tell measures a last time, and writes the measurements to the report.
func (o *observer) tell(ctx context.Context, rep *report) error {
	if err := o.look(ctx); err != nil {
		return err
	}
	sums, err := o.telemetry.sums(ctx)
	if err != nil {
		return err
	}
	rep.HeapInuse, rep.Parked, rep.Fetched = o.heap, o.parked, o.fetched.Load()
	rep.Released, rep.Refetched = sums["siding.parked.released"], sums["siding.parked.refetched"]
	return nil
}
