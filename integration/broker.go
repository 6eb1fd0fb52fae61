package integration

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	dockernet "github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/network"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Ports inside a container. Clients come in by the first one, which is published on the host.
const (
	clientPort     = 9092
	controllerPort = 9094
	internalPort   = 9095
)

// broker is one node of a cluster in its container.
type broker struct {
	node      int
	addr      string // host:port for clients, the same for as long as the container lives
	container testcontainers.Container
}

// startBroker starts a node's container and returns before the broker answers. A broker returned with an error is to be
// terminated nevertheless.
//
// A broker tells its clients the address by which they reach it, so the published port has to be known before the start,
// and has to stay the same when a killed broker comes back, which a port chosen by Docker does not. So the port is chosen
// here, and another one is tried if it turns out to be taken.
func startBroker(ctx context.Context, c config, node int, host string, nw *testcontainers.DockerNetwork) (*broker, error) {
	for attempt := 1; ; attempt++ {
		port := freePort()
		b := &broker{node: node, addr: net.JoinHostPort(host, strconv.Itoa(port))}
		opts := []testcontainers.ContainerCustomizer{
			testcontainers.WithLogger(log.NewNoopLogger()),
			testcontainers.WithEnv(c.environment(node, b.addr)),
			publish(port),
		}
		if nw != nil {
			opts = append(opts, network.WithNetwork([]string{c.hostname(node)}, nw))
		}
		var err error
		b.container, err = testcontainers.Run(ctx, c.image, opts...)
		if err == nil {
			return b, nil
		}
		err = fmt.Errorf("start broker %d from image %s: %w", node, c.image, err)
		if attempt == 5 || !portTaken(err) {
			return b, err
		}
		if err := b.terminate(ctx); err != nil {
			return nil, err
		}
	}
}

// publish maps the clients' port of a container to a port of the Docker host.
func publish(port int) testcontainers.CustomizeRequestOption {
	inside := dockernet.MustParsePort(fmt.Sprintf("%d/tcp", clientPort))
	return func(req *testcontainers.GenericContainerRequest) error {
		req.ExposedPorts = []string{inside.String()}
		return testcontainers.WithHostConfigModifier(func(hc *container.HostConfig) {
			hc.PortBindings = dockernet.PortMap{inside: {{HostIP: netip.IPv4Unspecified(), HostPort: strconv.Itoa(port)}}}
		}).Customize(req)
	}
}

// freePort picks a port that nothing listens on. It stays below the range from which systems take the local ports of
// outgoing connections (32768 and up on Linux, 49152 elsewhere): otherwise a client that dials a killed broker could be
// given the broker's port for its own end, and the broker could not come back.
func freePort() int {
	const low, high = 20000, 30000
	for {
		port := low + rand.IntN(high-low)
		l, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(port)))
		if err == nil {
			l.Close()
			return port
		}
	}
}

func portTaken(err error) bool {
	text := err.Error()
	return strings.Contains(text, "port is already allocated") || strings.Contains(text, "address already in use")
}

// waitReady waits until the broker answers, and lists itself and at least n brokers in all. Its port listens long before
// the broker does, so only an answer counts; and a broker that does not list itself is not yet allowed to lead partitions.
func (b *broker) waitReady(ctx context.Context, n int, login []kgo.Opt) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	cl, err := kgo.NewClient(append(login, kgo.SeedBrokers(b.addr))...)
	if err != nil {
		return err
	}
	defer cl.Close()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		listed, err := b.peers(ctx, cl)
		if err == nil && len(listed) >= n && slices.Contains(listed, int32(b.node)) {
			return nil
		}
		if ended := b.running(ctx); ended != nil && ctx.Err() == nil {
			return ended
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return b.notReady(listed, n, errors.Join(err, ctx.Err()))
		}
	}
}

// notReady says what was waited for in vain.
func (b *broker) notReady(listed []int32, n int, err error) error {
	if listed != nil {
		return fmt.Errorf("broker %d at %s lists brokers %v, want %d and itself among them: %w", b.node, b.addr, listed, n, err)
	}
	return fmt.Errorf("broker %d does not answer at %s (is that where the Docker Engine publishes its ports? "+
		"TESTCONTAINERS_HOST_OVERRIDE sets the host): %w", b.node, b.addr, err)
}

// peers asks the broker which brokers there are.
func (b *broker) peers(ctx context.Context, cl *kgo.Client) ([]int32, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second) // a connection made too early may never be answered
	defer cancel()
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{} // none; nil would mean all
	resp, err := req.RequestWith(ctx, cl.SeedBrokers()[0])
	if err != nil {
		return nil, err
	}
	nodes := make([]int32, len(resp.Brokers))
	for i, peer := range resp.Brokers {
		nodes[i] = peer.NodeID
	}
	return nodes, nil
}

// running reports a container that has ended, with the last lines it wrote.
func (b *broker) running(ctx context.Context) error {
	state, err := b.container.State(ctx)
	if err != nil {
		return fmt.Errorf("inspect broker %d: %w", b.node, err)
	}
	if state.Running {
		return nil
	}
	return fmt.Errorf("broker %d ended with exit code %d:\n%s", b.node, state.ExitCode, b.lastLines(ctx, 20))
}

// lastLines is the end of what the broker logged.
func (b *broker) lastLines(ctx context.Context, n int) string {
	r, err := b.container.Logs(ctx)
	if err != nil {
		return err.Error()
	}
	defer r.Close()
	var lines []string
	for s := bufio.NewScanner(r); s.Scan(); {
		if lines = append(lines, s.Text()); len(lines) > n {
			lines = lines[1:]
		}
	}
	return strings.Join(lines, "\n")
}

// terminate removes the container with its data, in whatever state it is.
func (b *broker) terminate(ctx context.Context) error {
	if b == nil || b.container == nil {
		return nil
	}
	// A test's cluster is thrown away: an orderly shutdown would only cost time.
	err := b.container.Terminate(ctx, testcontainers.StopTimeout(0))
	if err != nil {
		return fmt.Errorf("remove broker %d: %w", b.node, err)
	}
	return nil
}
