package outage

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/sidingkafka/siding/consumer/consumertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The incident without a breaker, and with it.
func TestTable_OfTheIncident(t *testing.T) {
	t.Parallel()
	off, on := incident(t, "off"), incident(t, "on")
	t.Logf("\n%s", table(off, on))
	if off.dead < 200 || off.calls < 3*orders {
		t.Errorf("without a breaker: %+v; want some 250 dead letters, and more than thrice the calls", off)
	}
	if on.dead > 0 || on.calls > orders || on.handled == "never" {
		t.Errorf("with a breaker: %+v; want no dead letter, fewer calls than orders, and all handled", on)
	}
}

// incident runs the outage.
func incident(t *testing.T, breaker string) counts {
	t.Helper()
	is := counts{breaker: breaker, handled: "never"}
	t.Run("breaker "+breaker, func(t *testing.T) {
		consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
			k.CreateTopic(topic, 4)
			var g gateway
			var c copies
			cfg := configure(&g, breaker == "off", &c)
			cfg.Policy.Jitter = -1 // the same numbers each time
			cfg.Kafka = []kgo.Opt{kgo.FetchMaxWait(time.Second)}
			k.Run(cfg)
			g.set(true)
			for i := range orders {
				k.Produce(&kgo.Record{Topic: topic, Key: fmt.Append(nil, i)})
				time.Sleep(between)
			}
			time.Sleep(500 * time.Millisecond) // nothing falls due as it ends
			g.set(false)
			end := time.Now()
			c.mu.Lock()
			is.parked = c.parked
			c.mu.Unlock()
			k.Conserved()
			time.Sleep(10 * time.Minute) // the longest delay of the policy, twice
			g.mu.Lock()
			defer g.mu.Unlock()
			is.calls, is.dead = g.calls, c.dead
			if g.charged == orders {
				is.handled = g.chargedAt.Sub(end).Round(time.Second).String() + " after its end"
			}
		})
	})
	return is
}
