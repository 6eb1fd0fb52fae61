package brokers

import (
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

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
