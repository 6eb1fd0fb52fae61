package integration

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/network"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	startTimeout = 5 * time.Minute // includes pulling the image
	readyTimeout = 2 * time.Minute
	faultTimeout = 3 * time.Minute
	stopTimeout  = time.Minute
)

// Kafka is a running cluster. Its methods may be called from several goroutines.
type Kafka struct {
	brokers []*broker // broker i is node i+1
	login   []kgo.Opt // as the first user, if there are users
	network *testcontainers.DockerNetwork
}

// StartKafka starts a cluster, waits until all its brokers answer, and removes it when tb ends. If
// no Docker Engine answers it skips tb; in CI it fails tb. See the package's documentation.
//
// One broker is ready in about 4 s and three in about 16 s. They keep the defaults of Apache Kafka,
// apart from a few that would slow tests or need more brokers than there are:
//
//   - internal topics are replicated three times, or as often as there are brokers
//   - a first rebalance starts at once (group.initial.rebalance.delay.ms)
//   - members of either group protocol may request session timeouts down to 500 ms
//   - members of the KIP-848 protocol send a heartbeat each 500 ms
//
// [WithConfig] changes these as well.
func StartKafka(tb testing.TB, opts ...Option) *Kafka {
	tb.Helper()
	requireDocker(tb)
	k, err := start(tb.Context(), opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := k.stop(); err != nil {
			tb.Error(err)
		}
	})
	return k
}

// Start starts a cluster for a program that is no test; [Kafka.Stop] ends it. It needs a Docker
// Engine and starts what [StartKafka] does.
func Start(ctx context.Context, opts ...Option) (*Kafka, error) {
	if err := pingDocker(ctx); err != nil {
		return nil, fmt.Errorf("real Kafka needs a Docker Engine, and none answers: %w", err)
	}
	return start(ctx, opts)
}

// Stop removes a cluster that [Start] has started.
func (k *Kafka) Stop() error { return k.stop() }

// Brokers returns the addresses of the brokers, each host:port, in the order of their node ids.
// They stay the same when a broker is killed and restarted. [WithAnnounced] does not change them.
func (k *Kafka) Brokers() []string {
	addrs := make([]string, len(k.brokers))
	for i, b := range k.brokers {
		addrs[i] = b.addr
	}
	return addrs
}

// Opts returns the options by which a client reaches the cluster, as the first user if there are
// users. The caller may append to the slice.
func (k *Kafka) Opts() []kgo.Opt {
	return append(k.seeds(), k.login...)
}

// As returns the options by which a client logs in as a user, with a password that may be wrong;
// see [WithUser].
func (k *Kafka) As(user, password string) []kgo.Opt {
	return append(k.seeds(), as(user, password)...)
}

func (k *Kafka) seeds() []kgo.Opt { return []kgo.Opt{kgo.SeedBrokers(k.Brokers()...)} }

// start starts a cluster that outlives ctx; it has to be stopped.
func start(ctx context.Context, opts []Option) (*Kafka, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	k, err := startBrokers(ctx, opts)
	if err == nil {
		err = k.waitReady(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start Kafka: %w", err), k.stop())
	}
	return k, nil
}

// startBrokers starts the containers at the same time: none of several brokers is ready before most
// of them run. The caller stops the result even after an error.
func startBrokers(ctx context.Context, opts []Option) (*Kafka, error) {
	k := new(Kafka)
	c, err := newConfig(opts)
	if err != nil {
		return k, err
	}
	k.login = c.login()
	host, err := daemonHost(ctx)
	if err != nil {
		return k, err
	}
	if c.brokers > 1 {
		if k.network, err = network.New(ctx); err != nil {
			return k, err
		}
	}
	k.brokers = make([]*broker, c.brokers)
	errs := make([]error, c.brokers)
	var wg sync.WaitGroup
	for i := range k.brokers {
		wg.Go(func() { k.brokers[i], errs[i] = startBroker(ctx, c, i+1, host, k.network) })
	}
	wg.Wait()
	return k, errors.Join(errs...)
}

// waitReady waits until each broker knows of all others.
func (k *Kafka) waitReady(ctx context.Context) error {
	for _, b := range k.brokers {
		if err := b.waitReady(ctx, len(k.brokers), k.login); err != nil {
			return err
		}
	}
	return nil
}

// stop removes all that start has started, also after a failed start.
func (k *Kafka) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	errs := make([]error, len(k.brokers))
	var wg sync.WaitGroup
	for i, b := range k.brokers {
		wg.Go(func() { errs[i] = b.terminate(ctx) })
	}
	wg.Wait()
	if k.network != nil {
		errs = append(errs, k.network.Remove(ctx))
	}
	return errors.Join(errs...)
}
