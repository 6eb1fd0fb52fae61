package integration

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// Kill ends a broker at once, without a shutdown, like a power cut. Nodes are numbered from 1. The
// broker's data is back after [Kafka.Restart].
//
// Use Kill only on a cluster of the test's own, or restart the broker before the test ends.
func (k *Kafka) Kill(tb testing.TB, node int) {
	tb.Helper()
	k.fault(tb, "kill", node, func(ctx context.Context, cl *testcontainers.DockerClient, b *broker) error {
		_, err := cl.ContainerKill(ctx, b.container.GetContainerID(), client.ContainerKillOptions{Signal: "KILL"})
		return err
	})
}

// Restart starts a killed broker, and waits until it answers and may lead partitions again. Its
// address stays the same.
func (k *Kafka) Restart(tb testing.TB, node int) {
	tb.Helper()
	k.fault(tb, "restart", node, func(ctx context.Context, cl *testcontainers.DockerClient, b *broker) error {
		if _, err := cl.ContainerStart(ctx, b.container.GetContainerID(), client.ContainerStartOptions{}); err != nil {
			return err
		}
		return b.waitReady(ctx, 1, k.login)
	})
}

// Pause freezes a broker: its connections stay open but are not answered, as in a long garbage
// collection. Nodes are numbered from 1. [Kafka.Unpause] ends it.
func (k *Kafka) Pause(tb testing.TB, node int) {
	tb.Helper()
	k.fault(tb, "pause", node, func(ctx context.Context, cl *testcontainers.DockerClient, b *broker) error {
		for {
			_, err := cl.ContainerPause(ctx, b.container.GetContainerID(), client.ContainerPauseOptions{})
			// The kernel may fail to freeze a container whose processes are forking; then nothing
			// is frozen.
			if err == nil || !strings.Contains(err.Error(), "unable to freeze") || ctx.Err() != nil {
				return err
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
}

// Unpause resumes a paused broker.
func (k *Kafka) Unpause(tb testing.TB, node int) {
	tb.Helper()
	k.fault(tb, "unpause", node, func(ctx context.Context, cl *testcontainers.DockerClient, b *broker) error {
		_, err := cl.ContainerUnpause(ctx, b.container.GetContainerID(), client.ContainerUnpauseOptions{})
		return err
	})
}

// fault applies an action of the Docker Engine to a node, even while the test is being cancelled.
func (k *Kafka) fault(tb testing.TB, name string, node int, do func(context.Context, *testcontainers.DockerClient, *broker) error) {
	tb.Helper()
	if node < 1 || node > len(k.brokers) {
		tb.Fatalf("%s broker %d: the cluster has nodes 1 to %d", name, node, len(k.brokers))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), faultTimeout)
	defer cancel()
	cl, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		tb.Fatalf("%s broker %d: %v", name, node, err)
	}
	defer cl.Close()
	if err := do(ctx, cl, k.brokers[node-1]); err != nil {
		tb.Fatalf("%s broker %d: %v", name, node, err)
	}
}
