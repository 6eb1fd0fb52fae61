package tier

// The settings of a tier, and what follows from them.

import (
	"log/slog"
	"time"

	"github.com/sidingkafka/siding/retrytopics"
)

// Config describes a retry partition.
type Config struct {
	Topic     string
	Partition int32
	Delay     time.Duration
	// Wait is the longest that an ordinary failure waits in the tier. MaxWait is the longest for a
	// failure whose error asks for a wait of its own.
	Wait, MaxWait time.Duration
	Provision     retrytopics.Spec
	Log           *slog.Logger
}

// reach is how far ahead of now records are soon due, in milliseconds. What was written together is
// due within the tier's jitter, and is fetched together. So nothing within the reach is evicted for
// records that are due later.
func (c *Config) reach() int64 { return max(c.jitter(), soon) + soon }

// jitter is how far the due times of records lie apart that failed together, in milliseconds.
func (c *Config) jitter() int64 { return (c.Wait - c.Delay).Milliseconds() }

// Partition names a partition for a fetch.
type Partition struct {
	Topic     string
	ID        [16]byte // of the topic; zero before Kafka 2.8, whose brokers have none
	Partition int32
}

// soon is how long before they are due evicted records are fetched again, in milliseconds: long
// enough for a leader to move meanwhile. An answer also contains records that are due later. They
// are kept if there is room: otherwise they would be fetched twice.
const soon = 3_000
