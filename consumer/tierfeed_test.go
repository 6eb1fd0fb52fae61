package consumer_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/retrytopics"
)

// Trap 8: the queue of parked records is unbounded. Here those due farthest away are evicted, and
// are back in time.
func TestTierFeed_BeyondItsBudgetRunsInTime(t *testing.T) {
	cases.Skip(t)
	each(t, orders, 2, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		var late lateness
		cfg := config(func(ctx context.Context, r *kgo.Record) error {
			f := consumer.DeliveryOf(ctx, r)
			late.add(f)
			if f.Attempt < 3 {
				return classify.Retryable(errBusy)
			}
			return nil
		})
		cfg.Order = order
		cfg.Policy.Tiers = []time.Duration{time.Minute, 10 * time.Minute}
		cfg.Policy.RetryBudget.Off = true
		cfg.MaxParkedBytes = 512 << 10
		c := k.Run(cfg)
		records := inBatches(k, 20, 100, time.Second)
		eventually(t, "all are parked", func() bool { return waiting(c) == len(records) })
		handledOnce(k, records)
		k.Conserved()
		late.check(t, cfg.Policy.Tiers...)
	})
}

// A lane whose dead letters are refused has a tier full of overdue records. They do not take the
// room of other lanes.
func TestTierFeed_OfABlockedLaneLeavesOthersTheirRoom(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("bills", 1)
		var late lateness
		cfg := config(func(ctx context.Context, r *kgo.Record) error {
			if f := consumer.DeliveryOf(ctx, r); r.Topic == "bills" {
				late.add(f)
				if f.Attempt > 2 {
					return nil
				}
			} else if f.Attempt > 1 && string(r.Key) == "stop" {
				return classify.Terminal(errors.New("no"))
			}
			return classify.Retryable(errBusy)
		})
		cfg.Topics = []string{"orders", "bills"}
		cfg.Policy.Tiers = []time.Duration{10 * time.Second, time.Minute}
		cfg.Policy.RetryBudget.Off = true
		cfg.MaxParkedBytes = 100_000
		again := k.Cluster.Fault(kfake.Fault{
			Keys: []kmsg.Key{kmsg.Fetch}, Count: -1, Observe: true,
			When: func(r kmsg.Request) bool { return r.(*kmsg.FetchRequest).SessionEpoch == -1 },
		})
		c := k.Run(cfg)
		k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq", Count: -1, Err: kerr.TopicAuthorizationFailed})
		k.Produce(&kgo.Record{Topic: "orders", Key: []byte("stop")})
		for range 20 {
			k.Produce(many(100)...)
		}
		time.Sleep(15 * time.Second) // the lane is blocked, 2,000 records of its tier are overdue
		if h := c.Health().Lanes; h[1].State != consumer.StateBlocked || h[1].Parked < 1000 {
			t.Fatalf("the lane of orders is %+v, want it blocked with its tier full", h[1])
		}
		var bills []*kgo.Record
		for i := range 500 {
			bills = append(bills, &kgo.Record{Topic: "bills", Value: []byte(strings.Repeat("x", 100)), Key: fmt.Append(nil, i)})
		}
		handledOnce(k, k.Produce(bills...))
		late.check(t, cfg.Policy.Tiers...)
		// Each record that was due before all records of its feed needed its own pass over its
		// block.
		if n := again.Hits(); n > 2500 {
			t.Errorf("%d fetches for 2,500 parked records that gave up their bytes", n)
		}
	})
}

// A failed fetch of evicted records is tried again, and no record is lost.
func TestTierFeed_FetchesEvictedRecordsInSpiteOfErrors(t *testing.T) {
	each(t, map[string]*kerr.Error{
		"no leader":      kerr.NotLeaderForPartition,
		"unknown":        kerr.UnknownServerError,
		"out of range":   kerr.OffsetOutOfRange,
		"not authorized": kerr.TopicAuthorizationFailed,
	}, 1, func(t *testing.T, k *consumertest.Kafka, err *kerr.Error) {
		cfg := config(busyOnce)
		cfg.Policy.Tiers = []time.Duration{time.Minute}
		cfg.MaxParkedBytes = 10_000
		c := k.Run(cfg)
		records := k.Produce(many(500)...)
		eventually(t, "all are parked", func() bool { return waiting(c) == 500 })
		refused := k.Cluster.Fault(kfake.Fault{
			Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders.retry.1m", Count: 5, Err: err,
			When: func(r kmsg.Request) bool { return r.(*kmsg.FetchRequest).SessionEpoch == -1 },
		})
		handledOnce(k, records)
		k.Conserved()
		if n := refused.Hits(); n != 5 {
			t.Errorf("%d fetches were refused, want 5", n)
		}
	})
}

// When workers had taken all ready records, the other due records slept until a worker returned.
func TestTierFeed_RunsDueRecordsWhileSlotsAreFree(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		var late lateness
		cfg := config(func(ctx context.Context, r *kgo.Record) error {
			f := consumer.DeliveryOf(ctx, r)
			late.add(f)
			if f.Attempt == 1 {
				return classify.Retryable(errBusy)
			}
			time.Sleep(20 * time.Second)
			return nil
		})
		cfg.Order, cfg.Concurrency = consumer.OrderNone, 2000
		cfg.Policy = consumer.Policy{Tiers: []time.Duration{time.Minute}, Jitter: -1, Breaker: noBreaker, RetryBudget: noBudget}
		k.Run(cfg)
		handledOnce(k, k.Produce(many(700)...))
		late.check(t, time.Minute)
	})
}

// The ready records of a tier were all of one key, and kept records of other keys from becoming
// ready.
func TestTierFeed_ABusyKeyHoldsUpNoOther(t *testing.T) {
	cases.Skip(t)
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		var other atomic.Int64
		cfg := config(func(ctx context.Context, r *kgo.Record) error {
			f := consumer.DeliveryOf(ctx, r)
			if f.Attempt == 1 {
				return classify.Retryable(errBusy)
			}
			if string(r.Key) == "other" {
				other.Store(int64(time.Since(f.NotBefore)))
				return nil
			}
			time.Sleep(time.Second)
			return nil
		})
		cfg.Order = consumer.OrderKey
		cfg.Policy = consumer.Policy{Tiers: []time.Duration{time.Minute}, Jitter: -1, Breaker: noBreaker, RetryBudget: noBudget}
		k.Run(cfg)
		var records []*kgo.Record
		for range 599 {
			records = append(records, &kgo.Record{Topic: "orders", Key: []byte("hot")})
		}
		records = k.Produce(append(records, &kgo.Record{Topic: "orders", Key: []byte("other")})...)
		handledOnce(k, records)
		if late := time.Duration(other.Load()); late > 100*time.Millisecond {
			t.Errorf("another key's record is %v late", late)
		}
	})
}

// A broker had no topic ids, or none in fetches, and was upgraded. It then required an id, and
// records that were read before could not be fetched again: their lane tried until another record
// came.
func TestTierFeed_FetchesFromUpgradedBrokers(t *testing.T) {
	type row struct {
		before *kversion.Versions
		byID   bool
	}
	each(t, map[string]row{
		"no ids":            {kversion.V2_7_0(), false},
		"no ids in fetches": {kversion.V3_0_0(), true},
		"ids":               {kversion.V3_1_0(), true},
	}, 1, func(t *testing.T, k *consumertest.Kafka, tt row) {
		var upgraded atomic.Bool
		k.Cluster.ControlKey(kmsg.ApiVersions.Int16(), func(r kmsg.Request) (kmsg.Response, error, bool) {
			if upgraded.Load() {
				return nil, nil, false
			}
			k.Cluster.KeepControl()
			return versionsOf(tt.before, r), nil, true
		})
		cfg := config(busyOnce)
		cfg.Policy = consumer.Policy{Tiers: []time.Duration{time.Minute}, Breaker: noBreaker, RetryBudget: noBudget}
		cfg.MaxParkedBytes = 10_000
		c := k.Run(cfg)
		records := k.Produce(many(500)...)
		eventually(t, "all are parked", func() bool { return waiting(c) == 500 })
		upgraded.Store(true)
		byID := k.Cluster.Fault(kfake.Fault{
			Keys: []kmsg.Key{kmsg.Fetch}, Count: -1, Observe: true,
			When: func(r kmsg.Request) bool {
				again := r.(*kmsg.FetchRequest)
				return again.SessionEpoch == -1 && again.Version > 12
			},
		})
		handledOnce(k, records)
		k.Conserved()
		if got := byID.Hits() > 0; got != tt.byID {
			t.Errorf("asked by the topic's id: %v, want %v", got, tt.byID)
		}
	})
}

// versionsOf returns the API versions of a broker of a version.
func versionsOf(v *kversion.Versions, r kmsg.Request) kmsg.Response {
	resp := r.ResponseKind().(*kmsg.ApiVersionsResponse)
	for key := range int16(100) {
		if highest, ok := v.LookupMaxKeyVersion(key); ok {
			k := kmsg.NewApiVersionsResponseApiKey()
			k.ApiKey, k.MaxVersion = key, highest
			resp.ApiKeys = append(resp.ApiKeys, k)
		}
	}
	return resp
}

// Trap 5: a fetch that was paused for lack of room is never resumed; members heartbeat, and nothing
// is consumed.
func TestTierFeed_PausedForLackOfRoomGoesOn(t *testing.T) {
	each(t, map[string]func(*consumer.Config){
		"by records":          func(c *consumer.Config) { c.MaxInFlight = 10 },
		"by bytes":            func(c *consumer.Config) { c.MaxInFlightBytes = 2000 },
		"by key, by records":  func(c *consumer.Config) { c.Order, c.MaxInFlight = consumer.OrderKey, 10 },
		"by key, by bytes":    func(c *consumer.Config) { c.Order, c.MaxInFlightBytes = consumer.OrderKey, 2000 },
		"no order, by record": func(c *consumer.Config) { c.Order, c.MaxInFlight = consumer.OrderNone, 10 },
	}, 2, func(t *testing.T, k *consumertest.Kafka, bound func(*consumer.Config)) {
		release := make(chan struct{})
		cfg := config(until(release))
		cfg.Policy.HandlerTimeout = -1
		bound(&cfg)
		c := k.Run(cfg)
		records := inBatches(k, 5, 100, 10*time.Second)
		var waits int
		for _, l := range c.Health().Lanes {
			waits += l.Queued + l.Running
		}
		// the first fetch may be larger than the bound; later records wait on the broker
		if waits > 250 {
			t.Errorf("%d of %d records are in memory, want what came before the fetches paused", waits, len(records))
		}
		close(release)
		handledOnce(k, records)
		k.Conserved()
	})
}

// skew makes the broker stamp records by a clock that is off. Each request takes a millisecond;
// otherwise virtual time would stand still in a loop of copies.
func skew(k *consumertest.Kafka, by time.Duration) {
	k.Cluster.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		k.Cluster.KeepControl()
		time.Sleep(time.Millisecond)
		for _, topic := range r.(*kmsg.ProduceRequest).Topics {
			for _, p := range topic.Partitions {
				const crc, attributes, first, last = 17, 21, 27, 35 // in a batch
				for _, at := range []int{first, last} {
					ms := int64(binary.BigEndian.Uint64(p.Records[at:])) + by.Milliseconds()
					binary.BigEndian.PutUint64(p.Records[at:], uint64(max(ms, 0)))
				}
				binary.BigEndian.PutUint32(p.Records[crc:], crc32.Checksum(p.Records[attributes:], crc32.MakeTable(crc32.Castagnoli)))
			}
		}
		return nil, nil, false
	})
}

// Trap 30: a Retry-After of 50 minutes is 400 copies on the tier of 5 s. It is one for as long as
// half of the topic's retention reaches, and a handful if it does not, or if the broker's clock is
// off: also over restarts, and of evicted records.
func TestTierFeed_ALongRetryAfterIsAHandfulOfCopies(t *testing.T) {
	cases.Skip(t)
	// the embedded broker deletes by its own clock after an hour
	const asked, records = 50 * time.Minute, 50
	const ages = 240_000 * time.Hour
	type row struct {
		skew      time.Duration
		retention time.Duration
		restarts  int
		budget    int64
		copies    int64 // of a record, at most
	}
	each(t, map[string]row{
		"default":                        {skew: -ages, copies: 1},
		"default, restarts":              {skew: -ages, copies: 1, restarts: 12},
		"a short retention":              {skew: -ages, copies: 9, retention: 65 * time.Minute},
		"a broker that is ahead":         {skew: 3 * time.Hour, copies: 9, retention: 65 * time.Minute},
		"a short one, restarts, no room": {skew: -ages, copies: 9, retention: 65 * time.Minute, restarts: 12, budget: 5000},
	}, 1, func(t *testing.T, k *consumertest.Kafka, tt row) {
		skew(k, tt.skew)
		var mu sync.Mutex
		failed := map[int64]time.Time{}
		cfg := config(func(ctx context.Context, r *kgo.Record) error {
			mu.Lock()
			defer mu.Unlock()
			f := consumer.DeliveryOf(ctx, r)
			if f.Attempt == 1 {
				failed[r.Offset] = time.Now()
				return classify.RetryAfter(errBusy, asked)
			}
			if early := asked - time.Since(failed[r.Offset]); early > 0 || f.Attempt != 2 || time.Now().Before(f.NotBefore) {
				t.Errorf("attempt %d of %d ran %v early", f.Attempt, r.Offset, early)
			}
			return nil
		})
		cfg.Policy = consumer.Policy{Tiers: []time.Duration{5 * time.Second}, Breaker: noBreaker, RetryBudget: noBudget}
		cfg.Provision = retrytopics.Spec{TierRetention: tt.retention}
		cfg.MaxParkedBytes = tt.budget
		c := k.Run(cfg)
		all := k.Produce(many(records)...)
		eventually(t, "all are parked", func() bool { return waiting(c) == records })
		for range tt.restarts {
			// All come before the first is due: records that ran above an unfinished one run again
			// after a restart.
			time.Sleep(asked / time.Duration(tt.restarts+1))
			stop(t, c)
			c = k.Run(cfg)
		}
		handledOnce(k, all)
		if n := k.Cluster.PartitionInfo("orders.retry.5s", 0).HighWatermark; n > tt.copies*records {
			t.Errorf("%d copies of %d records, want %d of each at most", n, records, tt.copies)
		}
		k.Conserved()
	})
}

// However far away all is due that waits in a tier, what is written behind it may be due first: a
// redriven record, one of a host whose clock is slow, and one that came from a drained tier or was
// written again because of its retention. A tier that is no longer read would make them late.
func TestTierFeed_WhatIsWrittenLastMayBeDueFirst(t *testing.T) {
	for name, tt := range map[string]struct {
		in       time.Duration // when it is due
		attempts int
	}{
		"redriven":                {attempts: 0},
		"by a clock that is slow": {in: 45 * time.Minute, attempts: 1},
		"of a drained tier":       {in: 20 * time.Minute, attempts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
				var late lateness
				var ran atomic.Int64
				cfg := config(func(ctx context.Context, r *kgo.Record) error {
					if d := consumer.DeliveryOf(ctx, r); d.Tier == 0 {
						return classify.Retryable(errBusy)
					} else if string(r.Key) == "first" {
						ran.Store(time.Now().UnixMilli())
						late.add(d)
					}
					return nil
				})
				cfg.Policy.Tiers = []time.Duration{time.Hour}
				c := k.Run(cfg)
				const n = 3000
				k.Produce(many(n)...)
				eventually(t, "all are parked", func() bool { return waiting(c) == n })
				time.Sleep(time.Second)
				m := headers.Meta{
					Group: cfg.Group, Attempts: tt.attempts, NotBefore: time.UnixMilli(0), FirstFailedAt: time.Now(), FailedAt: time.Now(), Class: "busy", Hops: 1,
					Original: headers.Position{Topic: "orders", Offset: n, Timestamp: time.Now()},
				}
				due := time.Now()
				if tt.in > 0 {
					due = due.Add(tt.in).Truncate(time.Millisecond)
					m.NotBefore = due
				} else {
					m.Redrive = headers.Redrive{ID: "r1", Count: 1, From: headers.Position{Topic: "orders.dlq"}, At: time.Now()}
				}
				k.Produce(&kgo.Record{Topic: "orders.retry.1h", Key: []byte("first"), Headers: m.Append(nil)})
				time.Sleep(tt.in + time.Second)
				if at := ran.Load(); at == 0 || at-due.UnixMilli() > 100 {
					t.Errorf("a second after it was due it had run %v after that (at %d); %+v", time.UnixMilli(at).Sub(due), at, c.Health().Lanes)
				}
			})
		})
	}
}
