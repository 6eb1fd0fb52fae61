package integration

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// Kill ends a broker at once, as a power cut does: it says goodbye to nobody. Nodes are numbered from 1. What it has
// written is there again after [Kafka.Restart].
//
// Kill a broker of a cluster that the test has for itself, or restart it before the test ends.
func (k *Kafka) Kill(tb testing.TB, node int) {
	tb.Helper()
	k.fault(tb, "kill", node, func(ctx context.Context, cl *testcontainers.DockerClient, b *broker) error {
		_, err := cl.ContainerKill(ctx, b.container.GetContainerID(), client.ContainerKillOptions{Signal: "KILL"})
		return err
	})
}

// Restart starts a killed broker and waits until it answers and may lead partitions again. Its address is the same as
// before.
func (k *Kafka) Restart(tb testing.TB, node int) {
	tb.Helper()
	k.fault(tb, "restart", node, func(ctx context.Context, cl *testcontainers.DockerClient, b *broker) error {
		if _, err := cl.ContainerStart(ctx, b.container.GetContainerID(), client.ContainerStartOptions{}); err != nil {
			return err
		}
		return b.waitReady(ctx, 1, k.login)
	})
}

// Pause freezes a broker: its connections stay open and nothing answers on them, as in a long garbage collection.
// Nodes are numbered from 1. [Kafka.Unpause] ends it.
func (k *Kafka) Pause(tb testing.TB, node int) {
	tb.Helper()
	k.fault(tb, "pause", node, func(ctx context.Context, cl *testcontainers.DockerClient, b *broker) error {
		for {
			_, err := cl.ContainerPause(ctx, b.container.GetContainerID(), client.ContainerPauseOptions{})
			// The kernel may not manage to freeze a container whose processes are busy forking; nothing of it is frozen then.
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

// Unpause lets a paused broker go on where it was.
func (k *Kafka) Unpause(tb testing.TB, node int) {
	tb.Helper()
	k.fault(tb, "unpause", node, func(ctx context.Context, cl *testcontainers.DockerClient, b *broker) error {
		_, err := cl.ContainerUnpause(ctx, b.container.GetContainerID(), client.ContainerUnpauseOptions{})
		return err
	})
}

// fault has the Docker Engine do something to a node, even while the test is being cancelled.
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
