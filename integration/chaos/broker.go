package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/integration/chaos/internal/child"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// brokerJob is what the embedded broker's process has to do: it serves three nodes at the ports,
// and announces the addresses instead.
type brokerJob struct {
	Dir       string
	Ports     []int
	Announced []string
	Defect    string
}

// order is what a run asks of the embedded broker; the broker answers each with a line.
type order struct {
	Op    string // fault, heal, remove, add, shuffle, rehash, close
	Node  int
	ID    int64 // of a fault
	Fault fault
}

// fault is an error with which the embedded broker answers requests until it is healed.
type fault struct {
	Keys  []int16
	Topic string
	Group string
	Code  int16
	Share int // one request in so many; 0 and 1: all
}

// brokerDefects are filled by tests.
var brokerDefects = map[string]func(*kfake.Cluster){}

// announcing is a listener whose address is another one's: the broker announces that. Connections
// end with their listener: the embedded broker leaves those to a removed node open, and refuses for
// ever what comes by them.
type announcing struct {
	net.Listener
	addr net.Addr

	mu     sync.Mutex
	conns  []net.Conn
	closed bool
}

// Accept implements net.Listener, as do the methods below.
func (a *announcing) Accept() (net.Conn, error) {
	conn, err := a.Listener.Accept()
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		conn.Close()
	}
	a.conns = append(a.conns, conn)
	return conn, nil
}

func (a *announcing) Addr() net.Addr { return a.addr }

// Close ends the connections, too.
func (a *announcing) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for _, conn := range a.conns {
		conn.Close()
	}
	return a.Listener.Close()
}

func runBroker(j brokerJob, orders *bufio.Reader, answers io.Writer) error {
	announced := map[int]net.Addr{}
	for i, port := range j.Ports {
		addr, err := net.ResolveTCPAddr("tcp", j.Announced[i])
		if err != nil {
			return err
		}
		announced[port] = addr
	}
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(len(j.Ports)), kfake.Ports(j.Ports...), kfake.DataDir(j.Dir), kfake.GroupMinSessionTimeout(time.Second),
		kfake.BrokerConfigs(map[string]string{
			"group.consumer.heartbeat.interval.ms": "500", "group.consumer.session.timeout.ms": fmt.Sprint(trace.Session.Milliseconds()),
		}),
		kfake.ListenFn(func(network, address string) (net.Listener, error) {
			l, err := net.Listen(network, address)
			if err != nil {
				return nil, err
			}
			return &announcing{Listener: l, addr: announced[l.Addr().(*net.TCPAddr).Port]}, nil
		}),
	)
	if err != nil {
		return err
	}
	if inject := brokerDefects[j.Defect]; inject != nil {
		inject(cluster)
	}
	fmt.Fprintln(answers, "ready")
	handles := map[int64]*kfake.FaultHandle{}
	for {
		line, err := orders.ReadBytes('\n')
		if err != nil {
			cluster.Close()
			return nil // the run is gone
		}
		var o order
		if err := json.Unmarshal(line, &o); err != nil {
			return err
		}
		err = nil
		switch o.Op {
		case "fault":
			handles[o.ID] = cluster.Fault(o.Fault.kfake())
		case "heal":
			if h := handles[o.ID]; h != nil { // a restart heals, too
				h.Remove()
			}
			delete(handles, o.ID)
		case "remove":
			err = cluster.RemoveNode(int32(o.Node))
		case "add":
			_, _, err = cluster.AddNode(int32(o.Node), j.Ports[o.Node])
		case "shuffle":
			cluster.ShufflePartitionLeaders()
		case "rehash":
			cluster.RehashCoordinators()
		case "close":
			cluster.Close()
			fmt.Fprintln(answers, "ok")
			return nil
		}
		answer := "ok"
		if err != nil {
			answer = err.Error()
		}
		fmt.Fprintln(answers, answer)
	}
}

func (f fault) kfake() kfake.Fault {
	k := kfake.Fault{Topic: f.Topic, Group: f.Group, Count: -1}
	errors.As(kerr.ErrorForCode(f.Code), &k.Err)
	for _, key := range f.Keys {
		k.Keys = append(k.Keys, kmsg.Key(key))
	}
	if f.Share > 1 {
		n := 0
		// on the broker's one goroutine
		k.When = func(kmsg.Request) bool { n++; return n%f.Share == 0 }
	}
	return k
}

// brokerNodes is the number of brokers that a run starts.
const brokerNodes = 3

// brokers are the brokers of a run, and what can be done to them. Nodes are numbered from 0. What
// is not among the capabilities is never called.
type brokers interface {
	can() capability
	// options are those of clients: of members, and of the run's own, which no fault of the
	// network reaches.
	options(direct bool) []kgo.Opt
	seeds() []string
	proxy(node int) *proxy
	end(node int) error
	begin(node int) error
	freeze(node int, on bool) error
	restart(atOnce bool, pause time.Duration) error
	// older ends all brokers, and starts them without the end of a partition's log; gone gets the
	// first offset that is lost.
	older(of trace.TP, gone func(from int64)) error
	moveLeaders() error
	moveCoordinators() error
	// answer makes the brokers answer with a fault, and refuse makes a topic unwritable, until heal
	// is called.
	answer(fault) (heal func() error, err error)
	refuse(topic string, rnd *rand.Rand) (heal func() error, err error)
	// deny takes a right from the members until heal is called.
	deny(right) (heal func() error, err error)
	close() error
}

// right is a permission of the members: to read a topic or to write to it, or to use a group.
type right struct {
	topic string
	write bool
	group string
}

// proxied are brokers behind proxies.
type proxied struct {
	proxies []*proxy
}

func (p proxied) proxy(node int) *proxy { return p.proxies[node] }

func (p proxied) seeds() (all []string) {
	for _, proxy := range p.proxies {
		all = append(all, proxy.addr())
	}
	return all
}

func (p proxied) options(direct bool) []kgo.Opt {
	opts := []kgo.Opt{kgo.SeedBrokers(p.seeds()...)}
	if !direct {
		return opts
	}
	behind := map[string]string{}
	for _, proxy := range p.proxies {
		behind[proxy.addr()] = proxy.target
	}
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	return append(opts, kgo.Dialer(func(ctx context.Context, network, host string) (net.Conn, error) {
		if addr := behind[host]; addr != "" {
			host = addr
		}
		return dialer.DialContext(ctx, network, host)
	}))
}

func (p proxied) close() {
	for _, proxy := range p.proxies {
		proxy.close()
	}
}

// embedded is the embedded broker as a run sees it.
type embedded struct {
	proxied
	job brokerJob
	log string

	mu   sync.Mutex // one order at a time
	proc *child.Process
	last int64 // id of the last fault
}

func startEmbedded(dir, log, defect string) (*embedded, error) {
	e := &embedded{job: brokerJob{Dir: dir, Defect: defect}, log: log}
	for range brokerNodes {
		p, err := newProxy()
		if err != nil {
			return nil, err
		}
		port, err := lowPort()
		if err != nil {
			return nil, err
		}
		p.set(func(p *proxy) { p.target = fmt.Sprintf("127.0.0.1:%d", port) })
		e.job.Ports = append(e.job.Ports, port)
		e.job.Announced = append(e.job.Announced, p.addr())
		e.proxies = append(e.proxies, p)
	}
	if err := e.start(); err != nil {
		return nil, err
	}
	return e, nil
}

func (e *embedded) start() error {
	p, err := child.Start(roleBroker, e.job, e.log)
	if err != nil {
		return err
	}
	line, err := p.Out.ReadString('\n')
	if err != nil {
		p.Kill()
		reason, _ := os.ReadFile(e.log)
		return fmt.Errorf("the embedded broker does not start, and says %q: %w; the end of its log: %s", line, err, reason[max(0, len(reason)-1000):])
	}
	e.proc = p
	return nil
}

// do gives an order and awaits its answer.
func (e *embedded) do(o order) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.give(o)
}

func (e *embedded) give(o order) error {
	line, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if _, err := e.proc.In.Write(append(line, '\n')); err != nil {
		return err
	}
	answer, err := e.proc.Out.ReadString('\n')
	if err != nil {
		return fmt.Errorf("the embedded broker ended: %w", err)
	}
	if answer != "ok\n" {
		return errors.New(answer)
	}
	return nil
}

// answer makes the broker answer with a fault until the returned function is called.
func (e *embedded) answer(f fault) (heal func() error, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last++
	id := e.last
	return func() error { return e.do(order{Op: "heal", ID: id}) }, e.give(order{Op: "fault", ID: id, Fault: f})
}

// controllerNode is the node that answers requests for the whole cluster. If it were removed, the
// embedded broker would never choose another one.
const controllerNode = brokerNodes - 1

// end ends a node: its connections end, and others lead its partitions. The controller's partitions
// have no leader that can be reached.
func (e *embedded) end(node int) error {
	e.proxies[node].set(func(p *proxy) { p.down = true })
	e.proxies[node].cut()
	if node == controllerNode {
		return nil
	}
	return e.do(order{Op: "remove", Node: node})
}

// begin starts a node that was ended.
func (e *embedded) begin(node int) error {
	defer e.proxies[node].set(func(p *proxy) { p.down = false })
	if node == controllerNode {
		return nil
	}
	return e.do(order{Op: "add", Node: node})
}

// restart ends the broker's process, at once or in order, and starts another on its data.
func (e *embedded) restart(atOnce bool, pause time.Duration) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	epochs, err := e.leaderEpochs()
	if err != nil {
		return err
	}
	if atOnce {
		e.proc.Kill()
	} else {
		if err := e.give(order{Op: "close"}); err != nil {
			return err
		}
		<-e.proc.Exited
		// The embedded broker takes members that expired meanwhile for the owners of their
		// partitions, for ever. Without this file all members join again, as after a kill.
		if err := os.Remove(filepath.Join(e.job.Dir, "session_state.json")); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	e.unreachable(true)
	defer e.unreachable(false)
	<-time.After(pause)
	if err := e.start(); err != nil {
		return err
	}
	return e.raiseEpochs(epochs)
}

func (e *embedded) close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	err := e.give(order{Op: "close"})
	e.proc.Kill()
	e.proxied.close()
	return err
}

func (e *embedded) can() capability {
	return canProxy | canAnswer | canRefuse | canEnd | canFreeze | canRestart | canDeny
}

func (e *embedded) freeze(node int, on bool) error {
	e.proxies[node].set(func(p *proxy) { p.frozen = on })
	return nil
}

// deny answers as a broker does that lacks a permission. Of a group, it takes the one to commit.
func (e *embedded) deny(of right) (heal func() error, err error) {
	switch {
	case of.group != "":
		return e.answer(fault{Keys: []int16{8}, Group: of.group, Code: 30})
	case of.write:
		return e.answer(fault{Keys: []int16{0}, Topic: of.topic, Code: 29})
	}
	return e.answer(fault{Keys: []int16{1}, Topic: of.topic, Code: 29})
}

func (e *embedded) moveLeaders() error      { return e.do(order{Op: "shuffle"}) }
func (e *embedded) moveCoordinators() error { return e.do(order{Op: "rehash"}) }

func (e *embedded) refuse(topic string, rnd *rand.Rand) (heal func() error, err error) {
	return e.answer(fault{Keys: []int16{0}, Topic: topic, Code: []int16{19, 29, 56}[rnd.IntN(3)]})
}
