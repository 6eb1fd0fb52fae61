package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
)

// A Bug makes the service fail.
type Bug struct {
	// Class and Message are those of the error.
	Class, Message string
	// Records is the number of records that fail by it.
	Records int
	// Retried is whether they go through all retry topics before they are dead letters.
	Retried bool
}

// An Incident is a broker and a service with bugs.
type Incident struct {
	// Bugs are those with which the service began.
	Bugs []Bug
	// Cluster is the broker, and Address is where it listens.
	Cluster *kfake.Cluster
	Address string
	// Producer is a client that writes the service's records.
	Producer *kgo.Client
	// Failed is closed once all records of the bugs are dead letters.
	Failed chan struct{}

	kafka  []kgo.Opt // of all its clients
	cancel context.CancelFunc
	ended  chan struct{} // the service's
	err    error         // of the service, once it ended

	mu    sync.Mutex
	has   map[string]Bug  // the bugs that are not fixed yet, by class
	left  int             // records that are no dead letters yet
	calls int             // that succeeded
	keys  map[string]bool // of the records that were processed
}

// StartIncidentOn starts a broker, and a service that reads from it, on a network.
func StartIncidentOn(network []kfake.Opt, kafka []kgo.Opt, bugs ...Bug) (*Incident, error) {
	cluster, err := kfake.NewCluster(append(network, kfake.NumBrokers(1), kfake.SeedTopics(4, "orders"))...)
	if err != nil {
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	i := &Incident{Bugs: bugs, Cluster: cluster, Address: cluster.ListenAddrs()[0], ended: make(chan struct{}), Failed: make(chan struct{}), has: map[string]Bug{}, keys: map[string]bool{}}
	i.kafka = append(slices.Clone(kafka), kgo.SeedBrokers(i.Address))
	for _, b := range bugs {
		i.has[b.Class] = b
		i.left += b.Records
	}
	if i.Producer, err = kgo.NewClient(i.kafka...); err != nil {
		cluster.Close()
		return nil, err
	}
	service, err := consumer.New(consumer.Config{
		Group: "billing", Topics: []string{"orders"}, Kafka: i.kafka, Handler: i.handle,
		Policy: consumer.Policy{
			Tiers: []time.Duration{time.Second, 5 * time.Second},
			// No record succeeds before the first fix: these would hold the story back.
			Breaker: consumer.Breaker{Off: true}, RetryBudget: consumer.RetryBudget{Off: true},
		},
		Logger: slog.New(slog.DiscardHandler), Hooks: []consumer.Hook{i},
	})
	if err != nil {
		i.Producer.Close()
		cluster.Close()
		return nil, err
	}
	running, cancel := context.WithCancel(context.Background())
	i.cancel = cancel
	go func() {
		defer close(i.ended)
		i.err = service.Run(running)
	}()
	return i, nil
}

// Stop ends the service and the broker.
func (i *Incident) Stop() {
	i.cancel()
	<-i.ended
	i.Producer.Close()
	i.Cluster.Close()
}

// handle is the service's handler.
func (i *Incident) handle(_ context.Context, r *kgo.Record) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	class := string(r.Value)
	if b, ok := i.has[class]; ok {
		err := classify.As(errors.New(b.Message), class)
		if b.Retried {
			return classify.Retryable(err)
		}
		return classify.Terminal(err)
	}
	i.calls++
	i.keys[string(r.Key)] = true
	return nil
}

// OnDeadLettered implements [consumer.HookDeadLettered].
func (i *Incident) OnDeadLettered(consumer.Routed) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.left--; i.left == 0 { // later ones go on
		close(i.Failed)
	}
}

// Hang makes all calls of the service's handler wait until Unhang.
func (i *Incident) Hang() { i.mu.Lock() }

// Unhang ends what Hang began.
func (i *Incident) Unhang() { i.mu.Unlock() }

// IsBroken reports whether the service has a bug that is not fixed.
func (i *Incident) IsBroken(class string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	_, has := i.has[class]
	return has
}

// Fix removes a bug.
func (i *Incident) Fix(class string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.has, class)
}

// Processed returns how many records the service processed, and in how many calls.
func (i *Incident) Processed() (records, calls int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.keys), i.calls
}

// Fail produces the records and waits until all of them are dead letters. It returns their number.
func (i *Incident) Fail(ctx context.Context) (int, error) {
	var records []*kgo.Record
	for _, b := range i.Bugs {
		for range b.Records {
			records = append(records, &kgo.Record{Topic: "orders", Key: fmt.Appendf(nil, "order-%d", len(records)), Value: []byte(b.Class)})
		}
	}
	if err := i.Producer.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return 0, fmt.Errorf("produce: %w", err)
	}
	select {
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	case <-i.ended:
		return 0, fmt.Errorf("the service ended: %w", i.err)
	case <-i.Failed:
		return len(records), nil
	}
}

// goOn produces some records each second, most of which fail.
func (i *Incident) goOn(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		classes := []string{"fine"}
		for _, b := range i.Bugs {
			classes = append(classes, b.Class)
		}
		r := &kgo.Record{Topic: "orders", Key: fmt.Appendf(nil, "later-%d", n), Value: []byte(classes[n%len(classes)])}
		if err := i.Producer.ProduceSync(ctx, r).FirstErr(); err != nil {
			return // the broker is gone
		}
	}
}
