package suite

import (
	"context"
	"encoding/base64"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
)

// restart: the configuration changes while records are in flight.
var restart = map[string]func(*testing.T, *fixture){
	// Trap 14: fewer attempts or tiers in the new configuration than records in flight assume.
	"a restart with fewer attempts ends the records in flight": func(t *testing.T, f *fixture) {
		cfg := f.config(busy)
		cfg.Policy.MaxAttempts = 50
		records := f.inFlight(t, cfg, tier2)
		cfg.Policy.MaxAttempts = 2
		f.Run(cfg)
		for _, r := range records {
			if m := f.DeadLettered(r, headers.ReasonExhausted); m.Attempts < 2 {
				t.Errorf("exhausted after %d attempts, want 2 at least", m.Attempts)
			}
		}
		f.Conserved()
	},
	// Full metadata of them all is 1.6 MB, more than a broker takes in one request.
	"400 partitions keep what is finished above their floors": func(t *testing.T, f *fixture) {
		cases.Skip(t)
		const partitions = 400
		topic := f.topic + "-wide"
		f.CreateTopic(topic, partitions)
		bits := strings.Repeat("\xaa", 3000) // of eight records each second one is finished
		metadata := func(bits string) string { return " b=" + base64.RawStdEncoding.EncodeToString([]byte(bits)) }
		all, records := []kadm.Offsets{}, []*kgo.Record{}
		for p := range int32(partitions) {
			offsets := kadm.Offsets{}
			offsets.Add(kadm.Offset{Topic: topic, Partition: p, At: 0, LeaderEpoch: 0, Metadata: "siding 1" + metadata(bits)})
			all = append(all, offsets)
			for i := range 3 {
				records = append(records, &kgo.Record{Topic: topic, Partition: p, Value: strconv.AppendInt(nil, int64(i), 10)})
			}
		}
		f.admin(t, func(ctx context.Context, cl *kadm.Client) error {
			for _, one := range all {
				if err := cl.CommitAllOffsets(ctx, f.group, one); err != nil {
					return err
				}
			}
			return nil
		})
		cl := f.client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
		defer cl.Close()
		must(t, cl.ProduceSync(context.Background(), records...).FirstErr())
		release, second, first := make(chan struct{}), atomic.Int64{}, atomic.Int64{}
		cfg := f.config(func(ctx context.Context, r *kgo.Record) error {
			switch r.Offset {
			case 0:
				select {
				case <-release:
				case <-ctx.Done():
					return ctx.Err()
				}
				first.Add(1)
			case 1:
				t.Errorf("record 1 of partition %d runs, though the metadata says that it is finished", r.Partition)
			default:
				second.Add(1)
			}
			return nil
		})
		cfg.Topics, cfg.Order, cfg.Concurrency, cfg.Policy.HandlerTimeout = []string{topic}, consumer.OrderNone, 2*partitions, -1
		cfg.Policy.Tiers = []time.Duration{tier1}
		f.Run(cfg)
		// committed counts the partitions whose offset is at a place, with metadata that ends so.
		committed := func(at int64, ends string) (n int) {
			f.admin(t, func(ctx context.Context, cl *kadm.Client) error {
				all, err := cl.FetchOffsets(ctx, f.group)
				all.Each(func(o kadm.OffsetResponse) {
					if o.Topic == topic && o.At == at && strings.HasSuffix(o.Metadata, ends) {
						n++
					}
				})
				return err
			})
			return n
		}
		after := metadata("\xae" + bits[1:])
		eventually(t, "each partition is committed with all that is finished", func() bool { return committed(0, after) == partitions })
		close(release)
		eventually(t, "all others run", func() bool { return first.Load() == partitions && second.Load() == partitions })
		eventually(t, "all partitions are committed", func() bool { return committed(3, "") == partitions })
	},
	"a restart with more tiers takes records in flight along": func(t *testing.T, f *fixture) {
		cfg := f.config(busy)
		cfg.Policy.Tiers = []time.Duration{tier2}
		records := f.inFlight(t, cfg, tier2)
		// One tier before the one that holds them, and one after it.
		cfg.Policy.Tiers = []time.Duration{tier1, tier2, 2 * tier2}
		f.Run(cfg)
		for _, r := range records {
			f.DeadLettered(r, headers.ReasonExhausted)
		}
		if m := f.Parked(records[7], 2*tier2, ""); m.Attempts != 2 {
			t.Errorf("the tier behind was reached after %d attempts, want 2: records in flight go on, not back", m.Attempts)
		}
		f.Conserved()
	},
	"a restart from tiers in another order of delays loses nothing": func(t *testing.T, f *fixture) {
		cfg := f.config(busy)
		records := f.inFlight(t, cfg, tier1)
		cfg.Policy.Tiers = []time.Duration{tier1 / 2, tier1, tier1 * 2, tier2}
		f.Run(cfg)
		for _, r := range records {
			f.DeadLettered(r, headers.ReasonExhausted)
		}
		f.Conserved()
	},
}

// inFlight runs a consumer until one record of 20, the eighth, is in the tier.
func (f *fixture) inFlight(t *testing.T, cfg consumer.Config, tier time.Duration) []*kgo.Record {
	t.Helper()
	c := f.Run(keepsIn(cfg, tier))
	records := f.Produce(f.many(20)...)
	f.Parked(records[7], tier, "")
	stop(t, c)
	return records
}

// keepsIn returns a configuration with which no record leaves the tier, however long the consumer
// takes to stop: a handler that gets one from there waits until it is cancelled.
func keepsIn(cfg consumer.Config, tier time.Duration) consumer.Config {
	handle := cfg.Handler
	cfg.Handler = func(ctx context.Context, r *kgo.Record) error {
		if is := consumer.DeliveryOf(ctx, r); is.Tier == tier {
			<-ctx.Done()
			return ctx.Err()
		}
		return handle(ctx, r)
	}
	cfg.DrainTimeout = 100 * time.Millisecond
	return cfg
}
