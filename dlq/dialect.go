package dlq

// How another program writes dead letters.

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sidingkafka/siding/headers"
)

// Dialect is how another program writes dead letters: the keys of its headers, and what is odd
// about them. A key that is empty does not exist in the dialect. docs/dialects.md has those that
// are built in, with their sources.
type Dialect struct {
	// Name is the dialect's: at most 32 of a-z, 0-9 and "-".
	Name string
	// Detect are the keys of headers by which a letter is recognized: it must have all of them.
	Detect []string
	// Topic, Partition, Offset and Timestamp are the keys about the record that failed, Group that
	// of the consumer group, and Attempts that of the number of deliveries.
	Topic, Partition, Offset, Timestamp, Group, Attempts string
	// Class, Message and Stack are the keys about the error, and Cause that of its cause's class.
	// Where these are missing, KeyClass, KeyMessage and KeyStack count: some programs tell errors
	// of the key apart.
	Class, Message, Stack, Cause   string
	KeyClass, KeyMessage, KeyStack string
	// Numbers is how numbers are written.
	Numbers Numbers
	// Sets is which of several headers of one key is the oldest, where a letter failed again and
	// has a second set of them.
	Sets Order
	// NextAttempt says that Attempts counts the delivery that would have come next.
	NextAttempt bool
	// TimestampKept says that a letter has the timestamp of its record, rather than the time at
	// which it was written.
	TimestampKept bool
	// OmitsValue says that a letter without a key and a value is one of which the writer took only
	// the place.
	OmitsValue bool
	// GroupPrefix goes before what Group says.
	GroupPrefix string
	// Wrappers are classes that say nothing of the fault. The class of the cause counts in their
	// place.
	Wrappers []string
	// Own are the keys of all headers that the program adds; one that ends in * stands for all keys
	// that begin with the rest.
	Own []string
}

// Numbers is how a dialect writes numbers.
type Numbers uint8

const (
	// DecimalText is decimal digits.
	DecimalText Numbers = iota
	// BigEndian is a signed number in the order of the network: partitions have 4 bytes, offsets 8,
	// times 1 to 8, attempts 1 or 4.
	BigEndian
)

// Order is the order of several headers of one key.
type Order uint8

const (
	// OldestFirst adds headers behind the others.
	OldestFirst Order = iota
	// NewestFirst adds them before the others.
	NewestFirst
)

// mostDetecting bounds the headers by which a dialect is recognized.
const mostDetecting = 8

// validate returns what is wrong with a dialect.
func (d *Dialect) validate() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if d.Name == "" || len(d.Name) > 32 || strings.Trim(d.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		add("its name has to be 1 to 32 of a-z, 0-9 and -")
	}
	if len(d.Detect) == 0 || len(d.Detect) > mostDetecting {
		add("Detect has to have 1 to %d keys of headers", mostDetecting)
	}
	for _, key := range d.Detect {
		if key == "" {
			add("a key of Detect is empty")
		}
	}
	keys := map[string]int{}
	for field, key := range d.keys() {
		if key == "" {
			continue
		}
		if headers.Reserved(key) {
			add("%q is a header of siding", key)
		}
		if _, twice := keys[key]; twice {
			add("%q is the key of two things", key)
		}
		keys[key] = field
	}
	if d.Partition != "" && d.Topic == "" || d.Offset != "" && d.Partition == "" {
		add("an offset needs a partition, and a partition a topic")
	}
	return errors.Join(errs...)
}

// The fields of a dialect, in the order of Dialect.keys.
const (
	fieldTopic = iota
	fieldPartition
	fieldOffset
	fieldTimestamp
	fieldGroup
	fieldAttempts
	fieldClass
	fieldMessage
	fieldStack
	fieldCause
	fieldKeyClass
	fieldKeyMessage
	fieldKeyStack
	dialectFields
)

// keys returns the keys of the fields.
func (d *Dialect) keys() [dialectFields]string {
	return [...]string{d.Topic, d.Partition, d.Offset, d.Timestamp, d.Group, d.Attempts, d.Class, d.Message, d.Stack, d.Cause, d.KeyClass, d.KeyMessage, d.KeyStack}
}
