package redrive_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/redrive"
)

func TestTraffic_IsWhatTheGroupFinishes(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 5, succeeding)
		r, p := planned(t, k)
		time.Sleep(time.Minute) // the letters were traffic
		_, err := r.Traffic(t.Context(), p, 0)
		refused(t, err, redrive.RefusedNoTraffic, "group billing finished no record of orders within 10s: give a rate")

		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for ctx.Err() == nil {
				k.Produce(records(20, "{}")...)
				time.Sleep(time.Second)
			}
		}()
		time.Sleep(5 * time.Second)
		began := time.Now()
		rate, err := r.Traffic(t.Context(), elsewhere(t, p), 20*time.Second)
		if took := time.Since(began); err != nil || math.Abs(rate-20) > 2 || took > 21*time.Second {
			t.Errorf("after %v it is %v, %v; want 20 records a second", took, rate, err)
		}
		began = time.Now()
		if _, err := r.Traffic(t.Context(), p, time.Hour); err != nil || time.Since(began) > 6*time.Minute {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		short, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if _, err := r.Traffic(short, p, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("its context ended, and it returned %v", err)
		}
		stop()
		<-done
		time.Sleep(time.Minute)
		_, err = r.Traffic(t.Context(), p, 6*time.Second)
		refused(t, err, redrive.RefusedNoTraffic, "within 6s")
	})
}

// A run of the letters of two groups must not take the share of the faster one from the slower.
func TestTraffic_IsThatOfTheSlowestGroup(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 1)
		handlers := map[string]*switched{"audit": {}, "billing": {}, "mail": {}}
		for group, s := range handlers {
			s.set(failing("tax"))
			k.Run(consumer.Config{Group: group, Topics: []string{"orders"}, Handler: s.handle})
		}
		k.Produce(records(1, "{}")...)
		time.Sleep(10 * time.Second)
		for group, s := range handlers {
			s.set(succeeding)
			if group == "billing" {
				s.set(func(context.Context, *kgo.Record) error { time.Sleep(200 * time.Millisecond); return nil })
			}
		}
		r, p := planned(t, k)
		if p.Letters != 3 {
			t.Fatalf("the plan has %d letters", p.Letters)
		}
		for range 60 {
			k.Produce(records(20, "{}")...)
		}
		go func() {
			for range 30 {
				time.Sleep(time.Second)
				k.Produce(records(20, "{}")...)
			}
		}()
		if rate, err := r.Traffic(t.Context(), p, 20*time.Second); err != nil || math.Abs(rate-5) > 1 {
			t.Errorf("it is %v, %v; want the 5 records a second of billing", rate, err)
		}
		time.Sleep(20 * time.Second)
	})
}

func TestTraffic_NeedsAGroup(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 1, nil)
		foreign := records(2, "{}")
		for _, r := range foreign {
			r.Topic = "orders.dlq"
		}
		k.Produce(foreign...)
		r := redriver(t, k)
		p := planOf(t, r, redrive.Selection{Topic: "orders.dlq", Filter: groupless, Target: redrive.Target{Topic: "orders"}})
		_, err := r.Traffic(t.Context(), p, 0)
		refused(t, err, redrive.RefusedNoTraffic, "the letters name no group")
		if _, err := r.Traffic(t.Context(), &redrive.Plan{}, 0); err == nil {
			t.Error("an empty plan has traffic")
		}
	})
}

// An operator set the group's offsets forward while it was stopped. The records that it passed so
// made a share of its traffic a rate that no group bears.
func TestTraffic_LeavesOutOffsetsSetByHand(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		s := letters(t, k, 5, succeeding)
		r, p := planned(t, k)
		go func() {
			time.Sleep(5 * time.Second)
			k.Produce(records(30, "{}")...)
			time.Sleep(5 * time.Second)
			s.stop(t)
			k.Produce(records(2000, "{}")...)
			time.Sleep(3 * time.Second)
			setOffset(t, k, "orders", k.Cluster.PartitionInfo("orders", 0).HighWatermark)
			time.Sleep(3 * time.Second)
			s.run(k)
			k.Produce(records(30, "{}")...)
		}()
		if rate, err := r.Traffic(t.Context(), p, 30*time.Second); err != nil || math.Abs(rate-2) > 0.2 {
			t.Errorf("it is %v, %v; want 2 records a second", rate, err)
		}
	})
}
