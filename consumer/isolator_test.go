package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
)

// mortal runs consumers one after the other, each of which dies at certain records: from then on
// nothing of it reaches the brokers.
type mortal struct {
	t      *testing.T
	k      *consumertest.Kafka
	dead   atomic.Bool
	deaths int
	ran
	calls ran
}

func newMortal(t *testing.T, k *consumertest.Kafka) *mortal {
	m := &mortal{t: t, k: k}
	k.Cluster.Control(func(req kmsg.Request) (kmsg.Response, error, bool) {
		k.Cluster.KeepControl()
		if m.dead.Load() {
			switch req.(type) {
			case *kmsg.OffsetCommitRequest, *kmsg.LeaveGroupRequest, *kmsg.ConsumerGroupHeartbeatRequest, *kmsg.ProduceRequest:
				return nil, errors.New("the process is dead"), true
			}
		}
		return nil, nil, false
	})
	return m
}

// handler dies when kills says so. Otherwise h handles the record.
func (m *mortal) handler(kills func(context.Context, *kgo.Record) bool, h consumer.Handler) consumer.Handler {
	return func(ctx context.Context, r *kgo.Record) error {
		if !m.dead.Load() {
			m.calls.count(r)
			if kills(ctx, r) {
				m.dead.Store(true)
			}
		}
		if m.dead.Load() {
			<-ctx.Done()
			return ctx.Err()
		}
		err := h(ctx, r)
		if err == nil && !m.dead.Load() {
			m.count(r)
		}
		return err
	}
}

// until runs consumers until one lives to see over. They drain for a moment only: a dead one
// repeats in vain what it sends.
func (m *mortal) until(cfg consumer.Config, over func() bool) {
	m.t.Helper()
	cfg.DrainTimeout = time.Second
	for !over() {
		c := m.k.Run(cfg)
		for end := time.Now().Add(10 * time.Minute); !m.dead.Load() && !over(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				m.t.Fatalf("not over within ten minutes, after %d deaths", m.deaths)
			}
		}
		if !m.dead.Load() {
			return
		}
		if m.deaths++; m.deaths > 20 {
			m.t.Fatal("20 deaths")
		}
		stopStuck(m.t, c)
		time.Sleep(2 * time.Minute) // the session ends
		m.dead.Store(false)
	}
}

// letters returns how many dead letters there are.
func (m *mortal) letters() (n int) {
	for p := range int32(3) {
		if info := m.k.Cluster.PartitionInfo("orders.dlq", p); info != nil {
			n += int(info.HighWatermark)
		}
	}
	return n
}

// missing returns how many of the records were not handled.
func (m *mortal) missing(records []*kgo.Record) (n int) {
	for _, r := range records {
		if m.times(r) == 0 {
			n++
		}
	}
	return n
}

// deathsIn reads the message of a crash letter: how many processes died, the last one by when.
func deathsIn(t *testing.T, message string) (n int, by time.Time) {
	t.Helper()
	var at string
	_, err := fmt.Sscanf(message, "at least %d processes in a row died, or lost the partition, before it was finished; the last one, by %24s", &n, &at)
	by, err2 := time.Parse(time.RFC3339, at)
	if err := errors.Join(err, err2); err != nil {
		t.Errorf("the letter's message is %q: %v", message, err)
	}
	return n, by
}

// A record that kills the process is found after CrashLimit + 1 deaths, each further one after two
// more. No other record is taken for one.
func TestIsolator_FindsWhatKills(t *testing.T) {
	each(t, cases.Cross(cases.Cross(orders, balancers), cases.Some(map[string]int{"1 poison": 1, "2 poisons": 2, "3 poisons": 3, "5 poisons": 5}, "1 poison", "3 poisons")), 3,
		func(t *testing.T, k *consumertest.Kafka, c cases.Pair[cases.Pair[consumer.Order, []kgo.Opt], int]) {
			m := newMortal(t, k)
			records := k.Produce(many(150)...) // within the first window of each partition
			var poisons []*kgo.Record
			for len(poisons) < c.B {
				if r := records[rand.IntN(len(records))]; !slices.Contains(poisons, r) {
					poisons = append(poisons, r)
				}
			}
			isPoison := func(r *kgo.Record) bool {
				return slices.ContainsFunc(poisons, func(p *kgo.Record) bool { return p.Partition == r.Partition && p.Offset == r.Offset })
			}
			innocent := slices.DeleteFunc(slices.Clone(records), isPoison)
			cfg := config(m.handler(func(_ context.Context, r *kgo.Record) bool { return isPoison(r) }, busyOnce))
			cfg.Order, cfg.Kafka = c.A.A, c.A.B
			m.until(cfg, func() bool { return m.missing(innocent) == 0 && m.letters() == len(poisons) })
			most := map[int]int{1: 4, 2: 6, 3: 8, 5: 12}[c.B]
			if m.deaths > most {
				t.Errorf("%d deaths, want %d at most", m.deaths, most)
			}
			for _, p := range poisons {
				meta := k.DeadLettered(p, headers.ReasonCrashLoop)
				if meta.Class != "crash.handler" || meta.Fingerprint == "" {
					t.Errorf("its class is %q, its fingerprint %q, want crash.handler and one", meta.Class, meta.Fingerprint)
				}
				n, by := deathsIn(t, meta.Message)
				if n > m.deaths || n < m.deaths && c.B == 1 || n < 4 {
					t.Errorf("its message says %d of %d deaths: %s", n, m.deaths, meta.Message)
				}
				if by.Before(meta.FailedAt.Add(-time.Minute)) || by.After(meta.FailedAt) || meta.Attempts != 1 {
					t.Errorf("%s, at %v, after %d attempts", meta.Message, meta.FailedAt, meta.Attempts)
				}
			}
			k.Conserved()
			more := k.Produce(many(300)...) // everything is as before
			m.until(cfg, func() bool { return m.missing(more) == 0 })
		})
}

// The class of a letter says whether its record killed the process in the decoder or in the
// handler.
func TestIsolator_TellsTheDecoderFromTheHandler(t *testing.T) {
	cases.Skip(t)
	each(t, map[string]string{"decoder": "crash.decode", "handler": "crash.handler"}, 1, func(t *testing.T, k *consumertest.Kafka, class string) {
		m := newMortal(t, k)
		records := k.Produce(many(40)...)
		nothing := func(context.Context, *kgo.Record) error { return nil }
		dies := m.handler(func(_ context.Context, r *kgo.Record) bool { return r.Offset == 17 }, nothing)
		lives := m.handler(func(context.Context, *kgo.Record) bool { return false }, nothing)
		in, then := dies, lives
		if class == "crash.handler" {
			in, then = lives, dies
		}
		m.until(config(consumer.Decode(
			func(ctx context.Context, r *kgo.Record) (int, error) { return 0, in(ctx, r) },
			func(ctx context.Context, r *kgo.Record, _ int) error { return then(ctx, r) },
		)), func() bool { return m.letters() == 1 })
		if meta := k.DeadLettered(records[17], headers.ReasonCrashLoop); meta.Class != class {
			t.Errorf("its class is %q, want %q", meta.Class, class)
		}
	})
}

// A retry that kills the process is found in its retry topic, also where a lane has little room.
func TestIsolator_FindsARetryThatKills(t *testing.T) {
	each(t, cases.Cross(cases.Cross(orders, balancers), map[string]bool{"much room": false, "little room": true}), 2, func(t *testing.T, k *consumertest.Kafka, c cases.Pair[cases.Pair[consumer.Order, []kgo.Opt], bool]) {
		m := newMortal(t, k)
		records := many(100)
		if c.B {
			for _, r := range records[:24] {
				r.Value = noise(900_000)
			}
			records = records[:24]
		}
		records = k.Produce(records...)
		victim := records[rand.IntN(len(records))]
		cfg := config(m.handler(func(ctx context.Context, r *kgo.Record) bool {
			return r.Partition == victim.Partition && r.Offset == victim.Offset && consumer.DeliveryOf(ctx, r).Attempt == 2
		}, func(ctx context.Context, r *kgo.Record) error {
			if consumer.DeliveryOf(ctx, r).Attempt == 1 {
				return classify.Retryable(errBusy)
			}
			return nil
		}))
		cfg.Order, cfg.Kafka = c.A.A, c.A.B
		if c.B {
			cfg.Concurrency, cfg.MaxInFlight, cfg.MaxParkedBytes = 1, 2, 1<<20
		}
		m.until(cfg, func() bool { return m.missing(records) == 1 && m.letters() == 1 })
		if m.deaths > 4 {
			t.Errorf("%d deaths, want 4 at most", m.deaths)
		}
		meta := k.DeadLettered(victim, headers.ReasonCrashLoop)
		if n, _ := deathsIn(t, meta.Message); n != m.deaths || meta.Attempts != 2 {
			t.Errorf("%d deaths: %s, after %d attempts", m.deaths, meta.Message, meta.Attempts)
		}
		k.Conserved()
	})
}

// A tier leaves the configuration between the deaths that a retry in it causes. The retry is found.
func TestIsolator_FindsARetryThatKillsInATierThatLeft(t *testing.T) {
	cases.Skip(t)
	each(t, cases.Cross(orders, map[string]int{"after 1 death": 1, "after 3 deaths": 3}), 1, func(t *testing.T, k *consumertest.Kafka, c cases.Pair[consumer.Order, int]) {
		m := newMortal(t, k)
		records := k.Produce(many(30)...)
		cfg := config(m.handler(func(ctx context.Context, r *kgo.Record) bool {
			return r.Offset == 7 && consumer.DeliveryOf(ctx, r).Attempt == 2
		}, busyOnce))
		cfg.Order, cfg.Policy.Tiers = c.A, []time.Duration{time.Second, time.Minute}
		m.until(cfg, func() bool { return m.deaths >= c.B })
		cfg.Policy.Tiers = []time.Duration{time.Minute}
		m.until(cfg, func() bool { return m.missing(records) == 1 && m.letters() == 1 })
		if m.deaths > 4 {
			t.Errorf("%d deaths, want 4 at most", m.deaths)
		}
		k.DeadLettered(records[7], headers.ReasonCrashLoop)
	})
}

// A death that no record caused costs nothing but the replay.
func TestIsolator_AccidentsIsolateNothing(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		m := newMortal(t, k)
		cfg := config(m.handler(func(context.Context, *kgo.Record) bool { return false }, busyOnce))
		log := logged(&cfg)
		for i := range 6 {
			c := k.Run(cfg)
			records := k.Produce(many(200)...)
			if i%2 == 0 {
				m.all(t, records)
				time.Sleep(time.Second) // more than a commit
			} else {
				time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
			}
			m.dead.Store(true)
			_ = c.Stop()
			time.Sleep(2 * time.Minute)
			m.dead.Store(false)
		}
		if n := log.with("processes died while they ran these records"); n > 0 {
			t.Errorf("%d times records were isolated", n)
		}
	})
}

// Without isolation, a record kills each process, and those behind it never run.
func TestIsolator_CanBeSwitchedOff(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		m := newMortal(t, k)
		records := k.Produce(many(20)...)
		cfg := config(m.handler(func(_ context.Context, r *kgo.Record) bool { return r.Offset == 7 }, func(context.Context, *kgo.Record) error { return nil }))
		cfg.Policy.CrashLimit = -1
		m.until(cfg, func() bool { return m.deaths == 6 })
		if n := m.missing(records); n != 13 {
			t.Errorf("%d records have not run, want 13", n)
		}
		if got := k.Cluster.GroupInfo("billing").Commits["orders"][0].Metadata; got != "siding" {
			t.Errorf("committed with %q", got)
		}
	})
}

// Random histories of records that kill, hang, fail and take long, of processes that die by
// accident, and of groups that change: every record ends where its script says, and only those that
// kill are taken for such. SIDING_SEED=7
// plays one again.
func TestIsolator_RandomHistories(t *testing.T) {
	t.Parallel()
	for _, seed := range cases.Seeds(16) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) { newHistory(t, k, seed).play() })
		})
	}
}
