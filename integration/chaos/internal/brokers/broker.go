package brokers

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
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// Role is the role of the embedded broker's process.
const Role = "broker"

// Job is what the embedded broker's process has to do: it serves three nodes at the ports,
// and announces the addresses instead.
type Job struct {
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
	Fault Fault
}

// Fault is an error with which the embedded broker answers requests until it is healed.
type Fault struct {
	Keys  []int16
	Topic string
	Group string
	Code  int16
	Share int // one request in so many; 0 and 1: all
}

// announcing is a listener whose address is another one's: the broker announces that. Connections
// End with their listener: the embedded broker leaves those to a removed node open, and refuses for
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

// startCluster starts the broker with the addresses that it is to announce.
func startCluster(j Job) (*kfake.Cluster, error) {
	announced := map[int]net.Addr{}
	for i, port := range j.Ports {
		addr, err := net.ResolveTCPAddr("tcp", j.Announced[i])
		if err != nil {
			return nil, err
		}
		announced[port] = addr
	}
	return kfake.NewCluster(
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
}

// Serve serves until a close is ordered, or the run is gone. inject may be nil; it is of tests.
func Serve(j Job, orders *bufio.Reader, answers io.Writer, inject func(*kfake.Cluster)) error {
	cluster, err := startCluster(j)
	if err != nil {
		return err
	}
	defer cluster.Close()
	if inject != nil {
		inject(cluster)
	}
	fmt.Fprintln(answers, "ready")
	handles := map[int64]*kfake.FaultHandle{}
	for {
		line, err := orders.ReadBytes('\n')
		if err != nil {
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
			cluster.Close() // its data are on the disk before the answer
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

func (f Fault) kfake() kfake.Fault {
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

// Nodes is the number of brokers that a run starts.
const Nodes = 3

// Cluster are the brokers of a run, and what can be done to them. Nodes are numbered from 0. What
// is not among the capabilities is never called.
type Cluster interface {
	Can() Capability
	// Options are those of clients: of members, and of the run's own, which no fault of the
	// network reaches.
	Options(direct bool) []kgo.Opt
	Seeds() []string
	Proxy(node int) *Proxy
	End(node int) error
	Begin(node int) error
	Freeze(node int, on bool) error
	Restart(atOnce bool, pause time.Duration) error
	// Older ends all brokers, and starts them without the end of a partition's log; gone gets the
	// first offset that is lost.
	Older(of trace.TP, gone func(from int64)) error
	MoveLeaders() error
	MoveCoordinators() error
	// Answer makes the brokers answer with a fault, and refuse makes a topic unwritable, until heal
	// is called.
	Answer(Fault) (heal func() error, err error)
	Refuse(topic string, rnd *rand.Rand) (heal func() error, err error)
	// Deny takes a right from the members until heal is called.
	Deny(Right) (heal func() error, err error)
	Close() error
}

// Right is a permission of the members: to read a topic or to write to it, or to use a group.
type Right struct {
	Topic string
	Write bool
	Group string
}

// Capability is what a run can do to its brokers.
type Capability uint8

// What runs can do.
const (
	CanProxy   Capability = 1 << iota // a proxy stands before each broker
	CanAnswer                         // the broker answers with errors, as ordered
	CanRefuse                         // a topic can be made unwritable
	CanEnd                            // nodes can be ended and started
	CanFreeze                         // nodes can be frozen
	CanRestart                        // all nodes can be ended at once, and started
	CanDeny                           // members' rights can be taken
)
