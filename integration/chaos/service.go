package chaos

import (
	"time"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/retrytopics"
)

// service is a group of consumers with topics of its own.
type service struct {
	Group      string
	Topics     []string
	Partitions int
	Order      consumer.Order
	NextGen    bool // the KIP-848 protocol
	Policy     policy
	Members    int // at first
	// Concurrency, MaxInFlight and MaxParkedBytes are those of the configuration.
	Concurrency, MaxInFlight int
	MaxParkedBytes           int64
}

// policy is what the checker has to know of a consumer's policy. Tiers may change from member to
// member, by a rolling change of the configuration.
type policy struct {
	Tiers          []time.Duration
	MaxAttempts    int
	HandlerTimeout time.Duration
	InPlace        int
	CommitInterval time.Duration
	DrainTimeout   time.Duration
	Session        time.Duration
}

func (s service) siblings(topic string, tiers []time.Duration) retrytopics.Siblings {
	named, _ := retrytopics.Naming{}.Siblings(topic, s.Group, tiers...) // names without a fault
	return named
}

// session is the session timeout of members.
const session = 6 * time.Second

// rebalanceTimeout is the time in which members of the classic protocol must join again.
const rebalanceTimeout = 15 * time.Second
