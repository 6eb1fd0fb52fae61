package topicmonitor

import (
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// Use is the role of a topic for the consumer.
type Use struct {
	Kind   Kind
	Source string // the topic whose sibling it is; a source's own name
	// Optional is set for a topic that the consumer can do without: it never counts as missing.
	Optional bool
}

// Kind is a kind of topic.
type Kind uint8

// The kinds of topics.
const (
	Source  Kind = iota
	Tier         // a configured retry topic
	DLQ          // a dead-letter topic
	Ledger       // the ledger of a dead-letter topic
	Drained      // a retry topic that left the configuration
)

func (k Kind) String() string {
	return [...]string{"source topic", "retry topic", "dead-letter topic", "ledger", "retry topic that is drained"}[k]
}

// Topic is a topic as the polls found it. Its fields belong to the goroutine of Loop, except
// Revoking.
type Topic struct {
	Name string
	Use  Use
	ID   kadm.TopicID
	Size int32 // the number of partitions; 0 until a poll finds the topic
	// Revoking is set by the Owner while the topic's lanes are revoked so that the clients can
	// forget it. Until then a suspicion waits.
	Revoking atomic.Bool

	former  map[kadm.TopicID]bool // a broker that lags may still report one of these
	missed  int                   // polls in a row that did not find the topic
	absent  time.Time             // of the first of these polls
	cleared time.Time             // when the clients last forgot the topic
}
