package consumertest_test

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/retrytopics"
)

// An hour of delays took 1.3 s, since an assertion asked the broker five times a second and a
// consumer once. What an hour takes is what its requests take; their number does not depend on the
// machine. -v prints the real time.
func TestVirtual_AnHourIsCheap(t *testing.T) { // not parallel: it prints real time
	cases.Skip(t)
	for name, tiers := range map[string][]time.Duration{"an hour": {time.Hour}, "17 hours": retrytopics.Cautious} {
		for protocol, opts := range map[string][]kgo.Opt{"classic": nil, "KIP-848": {kgo.ServerSideBalancer()}} {
			t.Run(name+", "+protocol, func(t *testing.T) {
				began := time.Now()
				requests := 0
				var virtual time.Duration
				consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
					k.Cluster.Control(func(kmsg.Request) (kmsg.Response, error, bool) {
						requests++
						return nil, nil, false
					})
					began := time.Now()
					k.CreateTopic("orders", 3)
					k.Run(consumer.Config{
						Group: "billing", Topics: []string{"orders"}, Policy: consumer.Policy{Tiers: tiers}, Kafka: opts,
						Handler: func(context.Context, *kgo.Record) error { return classify.Retryable(errBusy) },
					})
					k.DeadLettered(k.Produce(&kgo.Record{Topic: "orders", Value: []byte("never")})[0], headers.ReasonExhausted)
					virtual = time.Since(began)
				})
				took := time.Since(began)
				t.Logf("%v of virtual time took %v: %v an hour, and %d requests", virtual.Round(time.Minute), took.Round(time.Millisecond),
					time.Duration(float64(took)/virtual.Hours()).Round(time.Millisecond), requests)
				if perHour := float64(requests) / virtual.Hours(); perHour > 1000 {
					t.Errorf("%.0f requests an hour, want 1000 at most", perHour)
				}
			})
		}
	}
}

// Decoders of zstd closed a channel of the bubble from their finalizer: "fatal error: close of
// synctest channel from outside bubble" ended the binary, at some later test.
func TestVirtual_TakesZstd(t *testing.T) {
	t.Parallel()
	zstd := kgo.ProducerBatchCompression(kgo.ZstdCompression())
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 1)
		k.Run(consumer.Config{
			Group: "billing", Topics: []string{"orders"}, Kafka: []kgo.Opt{zstd}, Policy: consumer.Policy{NoteDiscards: true},
			Handler: func(_ context.Context, r *kgo.Record) error {
				if strings.HasPrefix(string(r.Value), "busy") {
					return classify.Retryable(errBusy)
				}
				return classify.Discard(errBusy)
			},
		})
		cl, err := kgo.NewClient(append(k.Opts(), zstd)...)
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		long := make([]byte, 50_000)
		rand.NewChaCha8([32]byte{}).Read(long)
		// Of the last one gzip makes more.
		for _, value := range []string{"busy", "no", "no", "no" + strings.Repeat(string(long), 6)} {
			r := &kgo.Record{Topic: "orders", Value: []byte(value + strings.Repeat(" and more", 1_000))}
			if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
			if value == "busy" {
				k.DeadLettered(r, headers.ReasonExhausted)
			} else {
				k.Discarded(r, "")
			}
		}
		k.Cluster.Compact() // as the broker does each hour
		if found, err := kadm.NewClient(cl).ListOffsetsAfterMilli(t.Context(), 0, "orders", "orders.dlq", "orders.dlq.ledger"); err != nil || found.Error() != nil {
			t.Error(err, found.Error())
		}
	})
	finalized := make(chan struct{})
	runtime.SetFinalizer(new([16]byte), func(*[16]byte) { close(finalized) })
	for range 3 { // a pool keeps its decoders over two collections
		runtime.GC()
	}
	<-finalized
}

// A test of a policy that takes longer than two hours failed for want of patience.
func TestKafka_PatienceFollowsFromThePolicies(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 1)
		k.CreateTopic("bills", 1)
		run := func(topic string, tiers ...time.Duration) {
			k.Run(consumer.Config{
				Group: topic, Topics: []string{topic}, Policy: consumer.Policy{Tiers: tiers},
				Handler: func(context.Context, *kgo.Record) error { return nil },
			})
		}
		is := func(want time.Duration) {
			t.Helper()
			if k.Patience != want {
				t.Errorf("patience is %v, want %v", k.Patience, want)
			}
		}
		is(2 * time.Hour)
		run("orders", retrytopics.Cautious...)
		is(2*time.Hour + (17*time.Hour+11*time.Minute)*11/10)
		run("bills", time.Minute) // shorter
		is(2*time.Hour + (17*time.Hour+11*time.Minute)*11/10)
		k.Patience = time.Minute
		k.CreateTopic("parcels", 1)
		run("parcels", 100*time.Hour)
		is(time.Minute)
	})
}

// An assertion about a policy that never gives up has to fail some day.
func TestKafka_PatienceHasAnEnd(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 1)
		k.Run(consumer.Config{
			Group: "billing", Topics: []string{"orders"}, Policy: consumer.Policy{Tiers: retrytopics.Cautious, MaxAttempts: math.MaxInt},
			Handler: func(context.Context, *kgo.Record) error { return nil },
		})
		if want := 7*24*time.Hour + 2*time.Hour; k.Patience != want {
			t.Errorf("patience is %v, want %v", k.Patience, want)
		}
	})
}
