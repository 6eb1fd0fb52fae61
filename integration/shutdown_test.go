package integration_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
)

// A frozen broker keeps connections open and answers nothing. kgo awaited it for 10 s a request,
// and Run returned after minutes: those of both protocols, and that of a start.
//
// The times to the second are those of consumer/consumer_run_test.go, in virtual time. Here
// Run has to return while the broker is frozen, before such waits can be over.
func TestConsumer_EndsInTimeWhileTheBrokerIsFrozen(t *testing.T) {
	long(t)
	t.Parallel()
	kafka := ownKafka(t)
	k := consumertest.On(t, kafka.Opts()...)
	topic := topicName(t)
	k.CreateTopic(topic, 2)
	const drain = 2 * time.Second
	config := func(group string, opts ...kgo.Opt) consumer.Config {
		return consumer.Config{
			Group: group, Topics: []string{topic}, DrainTimeout: drain, Kafka: append(kafka.Opts(), opts...),
			Handler: func(ctx context.Context, r *kgo.Record) error {
				if string(r.Value) == "waits" { // until it is cancelled
					<-ctx.Done()
				}
				return ctx.Err()
			},
		}
	}
	type member struct {
		name   string
		cancel context.CancelFunc
		ended  chan error
		most   time.Duration
	}
	begin := func(name string, most time.Duration, cfg consumer.Config) (member, *consumer.Consumer) {
		c, err := consumer.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		m := member{name, cancel, make(chan error, 1), most}
		go func() { m.ended <- c.Run(ctx) }()
		return m, c
	}
	var all []member
	for name, opts := range map[string][]kgo.Opt{"classic": nil, "KIP-848": {kgo.ServerSideBalancer()}} {
		m, c := begin(name, drain+40*time.Second, config("billing-"+name, opts...))
		all = append(all, m)
		select {
		case <-c.Ready():
		case err := <-m.ended:
			t.Fatalf("%s: Run returned %v", name, err)
		case <-time.After(time.Minute):
			t.Fatalf("%s: not ready within a minute", name)
		}
	}
	for _, value := range []string{"fine", "waits"} {
		for p := range int32(2) {
			k.Produce(&kgo.Record{Topic: topic, Partition: p, Value: []byte(value)})
		}
	}
	kafka.Pause(t, 1)
	defer kafka.Unpause(t, 1)
	starting, _ := begin("a start", 8*time.Second, config("billing-late"))
	all = append(all, starting)
	// The connections of the beginning time out after 10 s; then kgo opens new ones.
	<-time.After(12 * time.Second)
	began := time.Now()
	for _, m := range all {
		m.cancel()
	}
	var waiting sync.WaitGroup
	for _, m := range all {
		waiting.Go(func() {
			select {
			case err := <-m.ended:
				if err != nil {
					t.Errorf("%s: Run returned %v", m.name, err)
				}
				t.Logf("%s: Run returned after %v", m.name, time.Since(began))
			case <-time.After(m.most):
				t.Errorf("%s: Run did not return within %v", m.name, m.most)
			}
		})
	}
	waiting.Wait()
}
