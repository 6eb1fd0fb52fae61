package realkafka

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/integration"
)

// shared is one cluster for all tests of the package. They use different topics and groups.
var shared integration.Shared

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

// ledger is locked at the first attempt of some orders, and has no account for others.
type ledger struct {
	mu    sync.Mutex
	tries map[string]int // by key
}

func (l *ledger) Book(_ context.Context, key string, order []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tries[key]++
	switch {
	case string(order) == "late" && l.tries[key] < 2:
		return fmt.Errorf("book %s: %w", key, ErrLocked)
	case string(order) == "odd":
		return errors.New("no such account")
	}
	return nil
}

// config is the service's, with the test's own topic and group.
func config(t *testing.T, l Ledger) consumer.Config {
	t.Helper()
	cfg := Config(l)
	cfg.Group, cfg.Topics = t.Name(), []string{t.Name()}
	return cfg
}

func TestOrdersAreBooked(t *testing.T) {
	t.Parallel()
	k := consumertest.On(t, shared.Kafka(t).Opts()...)
	k.CreateTopic(t.Name(), 3)
	k.Run(config(t, &ledger{tries: map[string]int{}}))

	r := k.Produce(
		&kgo.Record{Topic: t.Name(), Key: []byte("customer-1"), Value: []byte("fine")},
		&kgo.Record{Topic: t.Name(), Key: []byte("customer-1"), Value: []byte("late")},
		&kgo.Record{Topic: t.Name(), Key: []byte("customer-2"), Value: []byte("odd")},
	)
	fine, late, odd := r[0], r[1], r[2]
	k.Handled(fine, 1)
	k.Parked(late, time.Second, "ledger.locked")
	k.Handled(late, 1)
	if letter := k.DeadLettered(odd, headers.ReasonTerminal); letter.Message != "no such account" {
		t.Errorf("the dead letter says %q", letter.Message)
	}
	k.Conserved() // each order is in exactly one place
}

// Parked records belong to the partition, not to the instance: the partition's next owner handles
// them. Kafka.Kill, Restart and Pause test brokers that die, restart or hang: such a test starts a
// cluster of its own, by integration.StartKafka.
func TestAnInstanceThatLeavesHandsOverWhatIsParked(t *testing.T) {
	t.Parallel()
	k := consumertest.On(t, shared.Kafka(t).Opts()...)
	k.CreateTopic(t.Name(), 3)
	books := &ledger{tries: map[string]int{}}
	first := k.Run(config(t, books))

	late := k.Produce(&kgo.Record{Topic: t.Name(), Key: []byte("customer-1"), Value: []byte("late")})[0]
	k.Parked(late, time.Second, "ledger.locked")
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	k.Run(config(t, books))
	k.Handled(late, 1)
	k.Conserved()
}
