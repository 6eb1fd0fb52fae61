package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/reserved"
	"github.com/sidingkafka/siding/retrytopics"
)

// A lot is records that wait in one tier: they failed at an even rate, and
// so fall due at that rate.
type lot struct {
	records int
	rate    int       // a second
	from    time.Time // when the first one is due at the earliest
}

// jitter is the share of the delay that siding's default policy spreads due
// times over.
const jitter = 0.1

// failedAt is when record i failed, in whole milliseconds like all times in headers.
func (l lot) failedAt(i int, delay time.Duration) time.Time {
	return pace{l.from.Add(-delay), l.rate}.at(i).Truncate(time.Millisecond)
}

// parked is a tier that has been filled.
type parked struct {
	data
	held int64 // bytes of its records as siding counts what it holds in memory
}

// park provisions the siblings of the source and fills its tiers with the
// lots, the first tier with the first lot: what a group finds that comes back
// from an outage. Records are numbered from one lot to the next.
//
// They are what siding writes, header by header, some twenty to a batch: a
// storm of failures writes larger batches, a trickle smaller ones. Only the
// source records that they name were never there.
func park(ctx context.Context, r *rig, source data, group string, tiers []time.Duration, lots ...lot) ([]parked, error) {
	siblings, err := groupNaming.Siblings(source.Topic, group, tiers...)
	if err != nil {
		return nil, err
	}
	if _, err := retrytopics.Ensure(ctx, r.admin, retrytopics.Spec{}, siblings); err != nil {
		return nil, err
	}
	topics, err := r.admin.ListTopics(ctx, source.Topic)
	if err != nil {
		return nil, fmt.Errorf("looking up %s: %w", source.Topic, err)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	origin := headers.Meta{
		Original: headers.Position{Topic: source.Topic, TopicID: topics[source.Topic].ID},
		Group:    group,
		Host:     host,
	}
	var all []parked
	first := 0
	for n, l := range lots {
		tier := siblings.Tiers[n]
		if l.records == 0 {
			all = append(all, parked{data: data{Topic: tier.Topic, Ends: make([]int64, len(source.Ends))}})
			continue
		}
		p, err := fillTier(ctx, r, tier, len(source.Ends), l, first, origin)
		if err != nil {
			return nil, fmt.Errorf("filling %s: %w", tier.Topic, err)
		}
		all = append(all, p)
		first += l.records
	}
	return all, nil
}

// fillTier writes one lot, its records numbered from first on.
func fillTier(ctx context.Context, r *rig, tier retrytopics.Tier, partitions int, l lot, first int, origin headers.Meta) (parked, error) {
	var (
		p       = parked{data: data{Topic: tier.Topic, Ends: make([]int64, partitions)}}
		encoder headers.Encoder
	)
	err := r.write(ctx, func(yield func(*kgo.Record) bool) {
		for i := range l.records {
			partition := int32(i % partitions)
			m := failedMeta(origin, partition, p.Ends[partition], l.failedAt(i, tier.Delay), tier.Delay)
			rec := p.record(partition, first+i, first+i, encoder.Append(&m, nil))
			p.held += heldSize(rec)
			if !yield(rec) {
				return
			}
		}
	}, kgo.ProducerBatchMaxBytes(16<<10))
	return p, err
}

// failure is what the records failed with.
var failure = (&classify.Classifier{}).Classify(errUnavailable)

// failedMeta returns the headers of a record that was read at the offset, failed at once and waits
// for the delay and its jitter.
func failedMeta(origin headers.Meta, partition int32, offset int64, failed time.Time, delay time.Duration) headers.Meta {
	m := origin
	m.Original.Partition, m.Original.Offset, m.Original.Timestamp = partition, offset, failed
	m.Fail(failure, failure.Message, failed)
	m.NotBefore = failed.Add(delay + jitterOf(delay))
	m.Hops = 1
	return m
}

// heldSize is the size that siding counts in its budget for a record: packed, and with the
// structures around it.
func heldSize(r *kgo.Record) int64 {
	n := 17 + len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += 4 + len(h.Value)
		if reserved.Of(h.Key) == reserved.User {
			n += 3 + len(h.Key)
		}
	}
	return int64(n + n/16 + 80)
}

// jitterOf returns a random part of a delay's jitter, in whole milliseconds.
func jitterOf(delay time.Duration) time.Duration {
	return time.Duration(rand.Int64N(int64(jitter*float64(delay.Milliseconds()))+1)) * time.Millisecond
}

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
	cfg.Policy.Tiers, cfg.MaxParkedBytes = j.Tiers, j.Budget
	cfg.Policy.Breaker.Off = true // every record of the source fails
	cfg.Kafka = append(cfg.Kafka, kgo.WithHooks(eye))
	eye.telemetry.wire(&cfg)
	cfg.Handler = func(ctx context.Context, r *kgo.Record) error {
		now := time.Now()
		facts := consumer.DeliveryOf(ctx, r)
		if facts.Tier == 0 {
			return errUnavailable
		}
		watch.record(index(r), now.Sub(facts.NotBefore))
		return nil
	}
	return trial(ctx, cfg, func(c *running) report {
		m.begin()
		look := eye.look
		if j.Unseen {
			look = func(context.Context) error { return nil }
		}
		err := meanwhile(c.ctx, observeEvery, look, func() error {
			c.await(c.Ready())
			if j.Offered > 0 {
				c.produce(j)
			}
			c.await(watch.done)
			c.parked(j.Stay)
			return nil
		})
		c.do(func() error { return err })
		rep := m.end(int64(total))
		c.do(func() error { return eye.report(c.ctx, &rep) })
		first := 0
		for _, n := range j.Due {
			l := watch.spread(first, first+n)
			rep.Late = append(rep.Late, l)
			rep.P50, rep.P99 = max(rep.P50, l.P50), max(rep.P99, l.P99)
			first += n
		}
		return rep
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

// report measures a last time, and writes the measurements to the report.
func (o *observer) report(ctx context.Context, rep *report) error {
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
