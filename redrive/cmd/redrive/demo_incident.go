package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
)

// A bug makes the service fail.
type bug struct {
	class, message string
	records        int // that fail by it
}

// An incident is a broker and a service with bugs.
type incident struct {
	bugs    []bug
	cluster *kfake.Cluster
	broker  string
	cl      *kgo.Client
	adm     *kadm.Client
	cancel  context.CancelFunc
	ended   chan struct{} // the service's
	err     error         // of the service, once it ended

	mu  sync.Mutex
	has map[string]string // the bugs that are not fixed yet: the message by class
	ran map[string]int    // how often a record was processed, by its key
}

// startIncident starts a broker and a service that reads from it.
func startIncident(bugs ...bug) (*incident, error) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(4, "orders"))
	if err != nil {
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	i := &incident{bugs: bugs, cluster: cluster, broker: cluster.ListenAddrs()[0], ended: make(chan struct{}), has: map[string]string{}, ran: map[string]int{}}
	for _, b := range bugs {
		i.has[b.class] = b.message
	}
	if i.cl, err = kgo.NewClient(kgo.SeedBrokers(i.broker)); err != nil {
		cluster.Close()
		return nil, err
	}
	i.adm = kadm.NewClient(i.cl)
	service, err := consumer.New(consumer.Config{
		Group: "billing", Topics: []string{"orders"}, Kafka: []kgo.Opt{kgo.SeedBrokers(i.broker)}, Handler: i.handle,
		Policy: consumer.Policy{Tiers: []time.Duration{time.Second, 5 * time.Second}}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		i.cl.Close()
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

func (i *incident) stop() {
	i.cancel()
	<-i.ended
	i.cl.Close()
	i.cluster.Close()
}

// handle is the service's handler.
func (i *incident) handle(_ context.Context, r *kgo.Record) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	class := string(r.Value)
	if message, ok := i.has[class]; ok {
		return classify.Terminal(classify.As(errors.New(message), class))
	}
	i.ran[string(r.Key)]++
	return nil
}

// fix removes a bug.
func (i *incident) fix(class string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.has, class)
}

// processed returns how many records the service processed once, and how many more than once.
func (i *incident) processed() (once, more int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, n := range i.ran {
		if n == 1 {
			once++
		} else {
			more++
		}
	}
	return once, more
}

// fail produces the records and waits until all of them are dead letters. It returns their number.
func (i *incident) fail(ctx context.Context) (int, error) {
	var records []*kgo.Record
	for _, b := range i.bugs {
		for range b.records {
			records = append(records, &kgo.Record{Topic: "orders", Key: fmt.Appendf(nil, "order-%d", len(records)), Value: []byte(b.class)})
		}
	}
	if err := i.cl.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return 0, fmt.Errorf("produce: %w", err)
	}
	for {
		var there int64
		listed, err := i.adm.ListEndOffsets(ctx, "orders.dlq")
		if err != nil {
			return 0, fmt.Errorf("list end offsets: %w", err)
		}
		listed.Each(func(o kadm.ListedOffset) { there += max(o.Offset, 0) })
		if there >= int64(len(records)) {
			return len(records), nil
		}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-i.ended:
			return 0, fmt.Errorf("the service ended: %w", i.err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
