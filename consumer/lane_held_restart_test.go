package consumer_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
)

// attemptsSeen are the times and numbers of a record's attempts.
type attemptsSeen struct {
	began time.Time
	of    []string
}

// handler fails the first two attempts of records whose value is "bad".
func (s *attemptsSeen) handler(ctx context.Context, r *kgo.Record) error {
	if string(r.Value) != "bad" {
		return nil
	}
	d := consumer.DeliveryOf(ctx, r)
	s.of = append(s.of, time.Since(s.began).Round(time.Second).String()+" "+string(rune('0'+d.Attempt)))
	if d.Attempt < 3 {
		return classify.As(classify.Retryable(errBusy), "busy")
	}
	return nil
}

// minutely is a configuration under which a record waits minutes after each failure.
func minutely(order consumer.Order, h consumer.Handler) consumer.Config {
	cfg := holdsKeys(order, h)
	cfg.Policy.Tiers, cfg.Policy.Jitter = []time.Duration{time.Minute, 2 * time.Minute}, -1
	return cfg
}

// The next owner waits the rest of the time, and counts on: after a hand-over, and after a crash.
// A version that holds no keys runs the record at once, as a first attempt.
func TestHeldLane_NextOwnerWaitsTheRest(t *testing.T) {
	type end struct{ dies, old bool }
	for name, order := range keeping {
		t.Run(name, func(t *testing.T) {
			each(t, map[string]end{"hand-over": {}, "crash": {dies: true}, "old version": {old: true}}, 1, func(t *testing.T, k *consumertest.Kafka, e end) {
				m, s := newMortal(t, k), &attemptsSeen{}
				cfg := minutely(order, s.handler)
				cfg.DrainTimeout = time.Second
				cfg.Kafka = append(cfg.Kafka, kgo.SessionTimeout(6*time.Second), kgo.HeartbeatInterval(time.Second))
				c := k.Run(cfg)
				s.began = time.Now()
				records := k.Produce(keyed("a", "bad"), keyed("b", "other"), keyed("a", "behind"))
				time.Sleep(20 * time.Second)
				if text := k.Cluster.GroupInfo("billing").Commits["orders"][0].Metadata; !strings.Contains(text, " k=") {
					t.Errorf("the commit says %q, and nothing of the head", text)
				}
				m.dead.Store(e.dies)
				stopStuck(t, c)
				time.Sleep(10 * time.Second)
				m.dead.Store(false)
				if e.old {
					cfg.HoldKeys = false
				}
				k.Run(cfg)
				time.Sleep(5 * time.Minute)
				want := []string{"0s 1", "1m1s 2", "3m1s 3"} // a commit has whole seconds
				if e.old {
					if len(s.of) < 2 || !strings.HasSuffix(s.of[1], " 1") || strings.HasPrefix(s.of[1], "1m") {
						t.Errorf("the attempts are %q, want the second one at once, as the first", s.of)
					}
				} else if !slices.Equal(s.of, want) {
					t.Errorf("the attempts are %q, want %q", s.of, want)
				}
				handledOnce(k, records)
				committed(t, k, "orders", 0, 3)
			})
		})
	}
}

// At MaxHeld records the lane begins no other key, and reads no more; heads and what waits behind
// them end. One below, it does.
func TestHeldLane_StopsAtMaxHeld(t *testing.T) {
	each(t, keeping, 1, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		s := &attemptsSeen{}
		cfg := minutely(order, s.handler)
		cfg.MaxHeld = 3
		handled := watch(&cfg)
		c := k.Run(cfg)
		k.Produce(keyed("a", "bad"), keyed("a", "behind"))
		time.Sleep(time.Second)
		k.Handled(k.Produce(keyed("b", "one below the bound"))[0], 1)
		k.Produce(keyed("a", "behind"))
		time.Sleep(time.Second)
		waits := k.Produce(keyed("b", "at the bound"))[0]
		time.Sleep(30 * time.Second)
		l := laneOf(t, c, "orders", 0)
		if l.State != consumer.StateWaiting || !strings.HasPrefix(l.Why, "held keys: 3 records of 1 keys wait") || l.Held != 3 || !c.Health().OK {
			t.Errorf("at the bound the lane is %+v", l)
		}
		if handled(waits) {
			t.Error("at the bound a record of another key ran")
		}
		if where := k.Cluster.GroupInfo("billing").Commits["orders"][0].Offset; where != 0 {
			t.Errorf("%d is committed past a head", where)
		}
		time.Sleep(3 * time.Minute)
		k.Handled(waits, 1)
		k.Conserved()
		committed(t, k, "orders", 0, 5)
		if l := laneOf(t, c, "orders", 0); l.State != consumer.StateRunning || l.Held != 0 {
			t.Errorf("at the end the lane is %+v", l)
		}
	})
}

// A head that kills the process is found as another record would be, and nothing else is taken for
// it. Its followers run then. Deaths while heads wait are not counted together.
func TestHeldLane_IsolatesAHeadThatKills(t *testing.T) {
	each(t, keeping, 1, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		m := newMortal(t, k)
		records := k.Produce(many(60)...)
		cfg := holdsKeys(order, m.handler(func(ctx context.Context, r *kgo.Record) bool {
			return r.Offset == 17 && consumer.DeliveryOf(ctx, r).Attempt == 2
		}, func(ctx context.Context, r *kgo.Record) error {
			if r.Offset%17 == 0 && consumer.DeliveryOf(ctx, r).Attempt == 1 {
				return classify.Retryable(errBusy)
			}
			return nil
		}))
		innocent := slices.Delete(slices.Clone(records), 17, 18)
		m.until(cfg, func() bool { return m.missing(innocent) == 0 && m.letters() == 1 })
		if meta := k.DeadLettered(records[17], headers.ReasonCrashLoop); meta.Attempts != 2 {
			t.Errorf("the letter says %d attempts, want the first and the one that killed", meta.Attempts)
		}
		if m.deaths > 5 {
			t.Errorf("%d deaths, want 5 at most", m.deaths)
		}
		k.Conserved()
	})
}

// While a record that kills is looked for, one that waits for an hour holds up no other key.
func TestHeldLane_SuspectsThatWaitHoldUpNone(t *testing.T) {
	each(t, keeping, 1, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		m, s := newMortal(t, k), &attemptsSeen{}
		cfg := minutely(order, m.handler(func(_ context.Context, r *kgo.Record) bool {
			if string(r.Value) != "kills" {
				return false
			}
			time.Sleep(time.Second) // a commit has said that the first record waits
			return true
		}, s.handler))
		cfg.Policy.Tiers, cfg.MaxHold, cfg.Policy.MaxAttempts = []time.Duration{time.Hour}, 2*time.Hour, 2
		k.Produce(keyed("a", "bad"), keyed("a", "behind"))
		began := time.Now()
		poison := k.Produce(keyed("b", "kills"))[0]
		var innocent []*kgo.Record
		for range 5 {
			innocent = append(innocent, k.Produce(many(20)...)...)
		}
		m.until(cfg, func() bool { return m.missing(innocent) == 0 && m.letters() == 1 })
		more := k.Produce(many(50)...) // which no process can have died of
		m.until(cfg, func() bool { return m.missing(more) == 0 })
		if lasted := time.Since(began); lasted > 50*time.Minute {
			t.Errorf("it took %v, longer than the first record waits", lasted)
		}
		k.DeadLettered(poison, headers.ReasonCrashLoop)
	})
}

// Processes that are killed while keys wait for minutes have killed nothing: their successors
// isolate no record.
func TestHeldLane_DeathsWhileKeysWaitAreAccidents(t *testing.T) {
	each(t, keeping, 1, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		m, s := newMortal(t, k), &attemptsSeen{}
		cfg := minutely(order, s.handler)
		cfg.Policy.Tiers, cfg.MaxHold = []time.Duration{time.Hour}, 2*time.Hour
		cfg.Policy.MaxAttempts = 2
		cfg.DrainTimeout = time.Second
		log := logged(&cfg)
		k.Produce(keyed("a", "bad"), keyed("b", "other"), keyed("a", "behind"))
		for range 5 {
			c := k.Run(cfg)
			time.Sleep(20 * time.Second)
			k.Handled(k.Produce(keyed("b", "new"))[0], 1)
			m.dead.Store(true)
			stopStuck(t, c)
			time.Sleep(2 * time.Minute)
			m.dead.Store(false)
		}
		k.Run(cfg)
		time.Sleep(20 * time.Second)
		k.Handled(k.Produce(keyed("b", "new"))[0], 1)
		log.has(t, 0, "processes died while they ran these records")
	})
}

// A handler says when its record may be tried again, up to MaxHold. A pause, and an outage, delay
// that further; a recreated source has no head.
func TestHeldLane_WaitsForWhatElseHolds(t *testing.T) {
	each(t, keeping, 1, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		var began time.Time
		var asks, second atomic.Int64
		cfg := minutely(order, func(ctx context.Context, r *kgo.Record) error {
			if consumer.DeliveryOf(ctx, r).Attempt == 1 && string(r.Value) == "bad" {
				return classify.RetryAfter(classify.Retryable(errBusy), time.Duration(asks.Load()))
			}
			second.Store(int64(time.Since(began).Round(time.Second)))
			return nil
		})
		cfg.MaxHold = 6 * time.Minute
		c := k.Run(cfg)
		for _, tt := range []struct {
			asks, paused, want time.Duration
		}{{5 * time.Minute, 0, 5 * time.Minute}, {time.Hour, 0, 6 * time.Minute}, {0, 4 * time.Minute, 4 * time.Minute}} {
			asks.Store(int64(tt.asks))
			began = time.Now()
			k.Produce(keyed("a", "bad"))
			time.Sleep(time.Second)
			if tt.paused > 0 {
				c.Pause("orders")
				time.Sleep(tt.paused - time.Second)
				c.Resume("orders")
			}
			time.Sleep(7 * time.Minute)
			if got := time.Duration(second.Load()); got != tt.want {
				t.Errorf("asked for %v, paused for %v: it ran again after %v, want %v", tt.asks, tt.paused, got, tt.want)
			}
		}
		asks.Store(int64(6 * time.Minute))
		k.Produce(keyed("a", "bad"))
		time.Sleep(time.Second)
		k.DeleteTopic("orders")
		time.Sleep(2 * time.Second)
		k.CreateTopic("orders", 1)
		time.Sleep(time.Minute)
		for range 4 {
			k.Handled(k.Produce(keyed("a", "new"))[0], 1)
		}
	})
}

// A head's first failure is as old for the next owner as it was: MaxAge, and in a strain
// Breaker.MaxOutage, would else begin anew with each hand-over, and the key be held for ever.
func TestHeldLane_HandOversDoNotRenewTheFirstFailure(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		cfg := minutely(consumer.OrderKey, func(context.Context, *kgo.Record) error {
			return classify.As(classify.Retryable(errBusy), "busy")
		})
		cfg.Policy.MaxAttempts, cfg.Policy.MaxAge = 7, 5*time.Minute
		c := k.Run(cfg)
		failed := time.Now().Truncate(time.Second)
		record := k.Produce(keyed("a", "bad"))[0]
		for range 3 {
			time.Sleep(100 * time.Second)
			stop(t, c)
			c = k.Run(cfg)
		}
		time.Sleep(30 * time.Second)
		letter := k.DeadLettered(record, headers.ReasonExpired)
		if first, last := letter.FirstFailedAt.Truncate(time.Second).Sub(failed), letter.FailedAt.Sub(failed); first != 0 || last > 6*time.Minute {
			t.Errorf("the record failed first %v after it was written, and last %v, want 5m at most as MaxAge says", first, last)
		}
		stop(t, c)
	})
}
