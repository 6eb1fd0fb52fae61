package trace

import (
	"time"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/retrytopics"
)

// Service is a group of consumers with topics of its own.
type Service struct {
	Group      string
	Topics     []string
	Partitions int
	Order      consumer.Order
	NextGen    bool // the KIP-848 protocol
	Policy     Policy
	Members    int // at first
	// Concurrency, MaxInFlight and MaxParkedBytes are those of the configuration.
	Concurrency, MaxInFlight int
	MaxParkedBytes           int64
}

// Policy is what the checker has to know of a consumer's policy. Tiers may change from member to
// member, by a rolling change of the configuration.
type Policy struct {
	Tiers          []time.Duration
	MaxAttempts    int
	HandlerTimeout time.Duration
	InPlace        int
	CommitInterval time.Duration
	DrainTimeout   time.Duration
	Session        time.Duration
}

// Siblings are the topics beside one of the sources, with these tiers.
func (s Service) Siblings(topic string, tiers []time.Duration) retrytopics.Siblings {
	named, _ := retrytopics.Naming{}.Siblings(topic, s.Group, tiers...) // names without a fault
	return named
}

// Session is the session timeout of members.
const Session = 6 * time.Second

// RebalanceTimeout is the time in which members of the classic protocol must join again.
const RebalanceTimeout = 15 * time.Second
