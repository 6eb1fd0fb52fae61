package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/integration"
)

// kafka are three real brokers in containers, each behind a proxy.
type kafka struct {
	proxied
	cluster *integration.Kafka
}

func startKafka(ctx context.Context) (*kafka, error) {
	k := new(kafka)
	for range brokerNodes {
		p, err := newProxy()
		if err != nil {
			return nil, err
		}
		k.proxies = append(k.proxies, p)
	}
	var mu sync.Mutex
	var err error
	k.cluster, err = integration.Start(ctx, integration.WithBrokers(brokerNodes),
		integration.WithConfig("group.consumer.session.timeout.ms", fmt.Sprint(session.Milliseconds())),
		integration.WithConfig("group.min.session.timeout.ms", "1000"),
		integration.WithAnnounced(func(node int, own string) string {
			mu.Lock()
			defer mu.Unlock()
			k.proxies[node-1].set(func(p *proxy) { p.target = own })
			return k.proxies[node-1].addr()
		}))
	if err != nil {
		k.proxied.close()
		return nil, err
	}
	return k, nil
}

func (k *kafka) can() capability { return canProxy | canRefuse | canEnd | canFreeze }

func (k *kafka) end(node int) error {
	return k.cluster.Inject(context.Background(), integration.FaultKill, node+1)
}

func (k *kafka) begin(node int) error {
	return k.cluster.Inject(context.Background(), integration.FaultRestart, node+1)
}

func (k *kafka) freeze(node int, on bool) error {
	f := integration.FaultUnpause
	if on {
		f = integration.FaultPause
	}
	return k.cluster.Inject(context.Background(), f, node+1)
}

// refuse asks for more replicas than there are.
func (k *kafka) refuse(topic string, _ *rand.Rand) (heal func() error, err error) {
	set := func(n string) error {
		cl, err := kgo.NewClient(k.options(true)...)
		if err != nil {
			return err
		}
		defer cl.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		responses, err := kadm.NewClient(cl).AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "min.insync.replicas", Value: &n}}, topic)
		for _, r := range responses {
			err = errors.Join(err, r.Err)
		}
		return err
	}
	return func() error { return set("2") }, set("4")
}

func (k *kafka) close() error {
	err := k.cluster.Stop()
	k.proxied.close()
	return err
}

func (k *kafka) restart(bool, time.Duration) error           { return errors.ErrUnsupported }
func (k *kafka) moveLeaders() error                          { return errors.ErrUnsupported }
func (k *kafka) moveCoordinators() error                     { return errors.ErrUnsupported }
func (k *kafka) answer(fault) (heal func() error, err error) { return nil, errors.ErrUnsupported }

// own is a cluster of somebody's, to which nothing can be done.
type own struct {
	kafka
	opts []kgo.Opt
}

func (o *own) can() capability        { return 0 }
func (o *own) options(bool) []kgo.Opt { return o.opts }
func (o *own) seeds() []string        { return nil }
func (o *own) close() error           { return nil }
