package topicmonitor

import (
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// Use is what a topic is to the consumer.
type Use struct {
	Kind   Kind
	Source string // whose sibling it is, or itself
}

// Kind is a kind of topic.
type Kind uint8

// The kinds of topics.
const (
	Source  Kind = iota
	Tier         // a configured retry topic
	DLQ          // a dead-letter topic
	Drained      // a retry topic that is not configured any more
)

func (k Kind) String() string {
	return [...]string{"source topic", "retry topic", "dead-letter topic", "retry topic that is drained"}[k]
}

// Topic is a topic as it was found so far. Its fields belong to the goroutine of Loop, but
// Revoking.
type Topic struct {
	Name string
	Use  Use
	ID   kadm.TopicID
	Size int32 // its partitions; none as long as it was never seen
	// Revoking is set by the Owner while the topic's lanes are revoked so that the clients can
	// forget it. Until then a suspicion waits.
	Revoking atomic.Bool

	former  map[kadm.TopicID]bool // a broker that lags behind may still tell one of these
	missed  int                   // polls in a row that did not find it
	absent  time.Time             // the first of these
	cleared time.Time             // when the clients last forgot it
}
