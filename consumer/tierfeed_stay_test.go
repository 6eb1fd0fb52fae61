package consumer_test

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/retrytopics"
)

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

// skews are by how much a broker's clock is ahead of the host's.
var skews = []time.Duration{
	-240_000 * time.Hour, -1000 * time.Hour, -90 * time.Hour, -3 * time.Hour, -time.Minute, -9 * time.Second, -7100 * time.Millisecond,
	0, 9 * time.Second, time.Minute, 3 * time.Hour, 90 * time.Hour, 240_000 * time.Hour,
}

// Trap 30: a broker's clock that is behind the host's has a parked record written to its tier again
// and again: 7.1 s made 24,537 copies of one record. Whatever the broker's clock says, an ordinary
// failure has one copy a tier, and runs when it is due.
func TestTierFeed_NoBrokersClockMakesAnotherCopy(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	for _, by := range skews {
		t.Run(by.String(), func(t *testing.T) {
			onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
				skew(k, by)
				var late lateness
				cfg := config(func(ctx context.Context, r *kgo.Record) error {
					late.add(consumer.DeliveryOf(ctx, r))
					return classify.Retryable(errBusy)
				})
				cfg.Policy = consumer.Policy{Tiers: []time.Duration{5 * time.Second}, MaxAttempts: 3, Breaker: noBreaker, RetryBudget: noBudget}
				k.Run(cfg)
				records := k.Produce(many(20)...)
				for _, r := range records {
					if m := k.DeadLettered(r, headers.ReasonExhausted); m.Attempts != 3 || m.Hops != 3 {
						t.Fatalf("%d attempts and %d copies, want 3 and 3", m.Attempts, m.Hops)
					}
				}
				if n := k.Cluster.PartitionInfo("orders.retry.5s", 0).HighWatermark; n != 40 {
					t.Errorf("%d copies in the tier, want 40", n)
				}
				late.check(t, 5*time.Second)
				k.Conserved()
			})
		})
	}
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
