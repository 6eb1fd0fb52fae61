package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// Fault is what can be done to a broker.
type Fault string

// The faults, and what ends them.
const (
	// FaultKill ends a broker at once, without a shutdown, like a power cut. The broker's data is
	// back after FaultRestart.
	FaultKill Fault = "kill"
	// FaultRestart starts a killed broker, and waits until it answers and may lead partitions
	// again. Its address stays the same.
	FaultRestart Fault = "restart"
	// FaultPause freezes a broker: its connections stay open but are not answered, as in a long
	// garbage collection. FaultUnpause ends it.
	FaultPause   Fault = "pause"
	FaultUnpause Fault = "unpause"
)

// Inject applies a fault to a node, for programs that are no tests. Nodes are numbered from 1.
func (k *Kafka) Inject(ctx context.Context, f Fault, node int) error {
	if node < 1 || node > len(k.brokers) {
		return fmt.Errorf("%s broker %d: the cluster has nodes 1 to %d", f, node, len(k.brokers))
	}
	ctx, cancel := context.WithTimeout(ctx, faultTimeout)
	defer cancel()
	cl, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return fmt.Errorf("%s broker %d: %w", f, node, err)
	}
	defer cl.Close()
	if err := k.inject(ctx, cl, f, k.brokers[node-1]); err != nil {
		return fmt.Errorf("%s broker %d: %w", f, node, err)
	}
	return nil
}

func (k *Kafka) inject(ctx context.Context, cl *testcontainers.DockerClient, f Fault, b *broker) error {
	id := b.container.GetContainerID()
	switch f {
	case FaultKill:
		_, err := cl.ContainerKill(ctx, id, client.ContainerKillOptions{Signal: "KILL"})
		return err
	case FaultRestart:
		if _, err := cl.ContainerStart(ctx, id, client.ContainerStartOptions{}); err != nil {
			return err
		}
		return b.waitReady(ctx, 1, k.login)
	case FaultPause:
		for {
			_, err := cl.ContainerPause(ctx, id, client.ContainerPauseOptions{})
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
	case FaultUnpause:
		_, err := cl.ContainerUnpause(ctx, id, client.ContainerUnpauseOptions{})
		return err
	}
	return fmt.Errorf("no such fault: %q", f)
}

// Kill is [FaultKill]. Use it only on a cluster of the test's own, or restart the broker before the
// test ends. Nodes are numbered from 1.
func (k *Kafka) Kill(tb testing.TB, node int) {
	tb.Helper()
	k.fault(tb, FaultKill, node)
}

// Restart is [FaultRestart].
func (k *Kafka) Restart(tb testing.TB, node int) {
	tb.Helper()
	k.fault(tb, FaultRestart, node)
}

// Pause is [FaultPause]; [Kafka.Unpause] ends it.
func (k *Kafka) Pause(tb testing.TB, node int) {
	tb.Helper()
	k.fault(tb, FaultPause, node)
}

// Unpause resumes a paused broker.
func (k *Kafka) Unpause(tb testing.TB, node int) {
	tb.Helper()
	k.fault(tb, FaultUnpause, node)
}

// fault applies a fault to a node, even while the test is being cancelled.
func (k *Kafka) fault(tb testing.TB, f Fault, node int) {
	tb.Helper()
	if err := k.Inject(context.WithoutCancel(tb.Context()), f, node); err != nil {
		tb.Fatal(err)
	}
}
