package integration

import (
	"bufio"
	"bytes"
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

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	dockernet "github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/network"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Ports inside a container. Clients connect to the first one, which is published on the host, as
// are those of further listeners.
const (
	clientPort     = 9092
	controllerPort = 9094
	internalPort   = 9095
)

// broker is one node of a cluster in its container.
type broker struct {
	node      int
	addr      string            // host:port for clients, constant while the container exists
	further   map[string]string // the same for each further listener, by name
	container testcontainers.Container
}

// startBroker starts a node's container and returns before the broker answers. The caller
// terminates the broker even after an error.
//
// A broker announces the address at which clients reach it. So the published port must be known
// before the start, and must stay the same when a killed broker restarts; a port chosen by Docker
// does not. Therefore startBroker chooses the port, and tries another one if it is taken.
func startBroker(ctx context.Context, c config, node int, host string, nw *testcontainers.DockerNetwork) (*broker, error) {
	for attempt := 1; ; attempt++ {
		inside, outside := c.ports(), []int(nil)
		var addrs []string
		for range inside {
			outside = append(outside, freePort(outside...))
			addrs = append(addrs, net.JoinHostPort(host, strconv.Itoa(outside[len(addrs)])))
		}
		b := &broker{node: node, addr: addrs[0], further: map[string]string{}}
		for i, l := range c.listeners {
			b.further[l.name] = addrs[1+i]
		}
		announced := slices.Clone(addrs)
		if c.announced != nil {
			announced[0] = c.announced(node, b.addr)
		}
		opts := []testcontainers.ContainerCustomizer{
			testcontainers.WithLogger(log.NewNoopLogger()),
			testcontainers.WithEnv(c.environment(node, announced...)),
			publish(inside, outside),
			testcontainers.WithFiles(c.copies()...),
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
			return b, adviseOnImage(ctx, c.image, err)
		}
		if err := b.terminate(ctx); err != nil {
			return nil, err
		}
	}
}

// adviseOnImage adds to the error of a start what to do if the Docker Engine lacks the image.
func adviseOnImage(ctx context.Context, image string, err error) error {
	provider, failed := testcontainers.NewDockerProvider()
	if failed != nil {
		return err
	}
	defer provider.Close()
	if _, failed := provider.Client().ImageInspect(ctx, image); !errdefs.IsNotFound(failed) {
		return err
	}
	return fmt.Errorf("%w; the Docker Engine lacks image %s and could not pull it: set %s to an image that it has, or build one with .ci/kafka-image/build.sh of siding's repository", err, image, imageEnv)
}

// publish maps ports of a container to ports of the Docker host.
func publish(inside, outside []int) testcontainers.CustomizeRequestOption {
	bindings := dockernet.PortMap{}
	return func(req *testcontainers.GenericContainerRequest) error {
		for i, port := range inside {
			of := dockernet.MustParsePort(fmt.Sprintf("%d/tcp", port))
			req.ExposedPorts = append(req.ExposedPorts, of.String())
			bindings[of] = []dockernet.PortBinding{{HostIP: netip.IPv4Unspecified(), HostPort: strconv.Itoa(outside[i])}}
		}
		return testcontainers.WithHostConfigModifier(func(hc *container.HostConfig) { hc.PortBindings = bindings }).Customize(req)
	}
}

// copies returns the config's files as they are copied into a container, once.
func (c config) copies() (files []testcontainers.ContainerFile) {
	for path, content := range c.files {
		files = append(files, testcontainers.ContainerFile{Reader: bytes.NewReader(content), ContainerFilePath: path, FileMode: 0o644})
	}
	return files
}

// freePort returns a port without a listener that is none of those in use. It is below the range
// from which systems take the local ports of outgoing connections (32768 and up on Linux, 49152
// elsewhere). Otherwise a client that dials a killed broker could occupy the broker's port, and the
// broker could not restart.
func freePort(inUse ...int) int {
	const low, high = 20000, 30000
	for {
		port := low + rand.IntN(high-low)
		if slices.Contains(inUse, port) {
			continue
		}
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

// waitReady waits until the broker answers, and lists itself and at least n brokers in all. Its
// port accepts connections long before the broker answers. A broker that does not list itself may
// not lead partitions yet.
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

// notReady returns the error of a wait that timed out.
func (b *broker) notReady(listed []int32, n int, err error) error {
	if listed != nil {
		return fmt.Errorf("broker %d at %s lists brokers %v, want %d and itself among them: %w", b.node, b.addr, listed, n, err)
	}
	return fmt.Errorf("broker %d does not answer at %s (is that where the Docker Engine publishes its ports? "+
		"TESTCONTAINERS_HOST_OVERRIDE sets the host): %w", b.node, b.addr, err)
}

// peers returns the brokers that the broker knows.
func (b *broker) peers(ctx context.Context, cl *kgo.Client) ([]int32, error) {
	// An early connection may never be answered.
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
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

// lastLines returns the end of the broker's log.
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

// terminate removes the container with its data, whatever its state.
func (b *broker) terminate(ctx context.Context) error {
	if b == nil || b.container == nil {
		return nil
	}
	// An orderly shutdown of a test's cluster would only cost time.
	err := b.container.Terminate(ctx, testcontainers.StopTimeout(0))
	if err != nil {
		return fmt.Errorf("remove broker %d: %w", b.node, err)
	}
	return nil
}
