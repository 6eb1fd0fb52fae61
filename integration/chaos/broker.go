package chaos

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// brokerJob is what the embedded broker's process has to do: it serves three nodes at the ports, and
// announces the addresses instead.
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

// announcing is a listener whose address is another one's: the broker announces that.
type announcing struct {
	net.Listener
	addr net.Addr
}

func (a announcing) Addr() net.Addr { return a.addr }

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
			"group.consumer.heartbeat.interval.ms": "500", "group.consumer.session.timeout.ms": fmt.Sprint(session.Milliseconds()),
		}),
		kfake.ListenFn(func(network, address string) (net.Listener, error) {
			l, err := net.Listen(network, address)
			if err != nil {
				return nil, err
			}
			return announcing{l, announced[l.Addr().(*net.TCPAddr).Port]}, nil
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
		k.When = func(kmsg.Request) bool { n++; return n%f.Share == 0 } // on the broker's one goroutine
	}
	return k
}

// embedded is the embedded broker as a run sees it.
type embedded struct {
	job     brokerJob
	log     string
	proxies []*proxy

	mu   sync.Mutex // one order at a time
	proc *process
	last int64 // id of the last fault
}

const embeddedNodes = 3

func startEmbedded(dir, log, defect string) (*embedded, error) {
	e := &embedded{job: brokerJob{Dir: dir, Defect: defect}, log: log}
	for range embeddedNodes {
		p, err := newProxy()
		if err != nil {
			return nil, err
		}
		l, err := listenLow()
		if err != nil {
			return nil, err
		}
		p.set(func(p *proxy) { p.target = l.Addr().String() })
		e.job.Ports = append(e.job.Ports, l.Addr().(*net.TCPAddr).Port)
		e.job.Announced = append(e.job.Announced, p.addr())
		e.proxies = append(e.proxies, p)
		l.Close()
	}
	return e, e.start()
}

// listenLow listens on a port below those that systems give to outgoing connections: the broker
// listens there later, again after each restart, and the port must not be taken meanwhile.
func listenLow() (l net.Listener, err error) {
	for range 100 {
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(10000))); err == nil {
			return l, nil
		}
	}
	return nil, err
}

func (e *embedded) start() error {
	p, err := startProcess(roleBroker, e.job, e.log)
	if err != nil {
		return err
	}
	line, err := p.out.ReadString('\n')
	if err != nil || line != "ready\n" {
		p.kill()
		return fmt.Errorf("the embedded broker does not start: %q, %v; see %s", line, err, e.log)
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
	if _, err := e.proc.in.Write(append(line, '\n')); err != nil {
		return err
	}
	answer, err := e.proc.out.ReadString('\n')
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

// end ends a node: its connections end, and others lead its partitions.
func (e *embedded) end(node int) error {
	e.proxies[node].set(func(p *proxy) { p.down = true })
	e.proxies[node].cut()
	return e.do(order{Op: "remove", Node: node})
}

// begin starts a node that was ended.
func (e *embedded) begin(node int) error {
	defer e.proxies[node].set(func(p *proxy) { p.down = false })
	return e.do(order{Op: "add", Node: node})
}

// restart ends the broker's process, at once or in order, and starts another on its data.
func (e *embedded) restart(atOnce bool, pause time.Duration) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if atOnce {
		e.proc.kill()
	} else {
		if err := e.give(order{Op: "close"}); err != nil {
			return err
		}
		<-e.proc.exited
	}
	<-time.After(pause)
	return e.start()
}

func (e *embedded) close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	err := e.give(order{Op: "close"})
	e.proc.kill()
	for _, p := range e.proxies {
		p.close()
	}
	return err
}
