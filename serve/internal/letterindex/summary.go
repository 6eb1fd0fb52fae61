package letterindex

import (
	"time"

	"github.com/sidingkafka/siding/dlq"
)

// Summary counts the letters of a topic.
type Summary struct {
	// Open, Pending, Resolved and Duplicates are as in [dlq.Summary].
	Open, Pending, Resolved, Duplicates int64
	// Oldest and Newest are when the first and the last of the open letters were written; zero if
	// none is open.
	Oldest, Newest time.Time
	// Groups are the open letters by class and fingerprint, the most letters first.
	Groups []Group
	// ResolvedAs splits Resolved by the letters' states.
	ResolvedAs map[dlq.State]int64
	// Written counts by class all letters that are not duplicates, resolved ones included, and
	// FirstWritten has when the first of them was written.
	Written      map[string]int64
	FirstWritten map[string]time.Time
}

// Group counts the open letters of one class and fingerprint.
type Group struct {
	Class, Fingerprint string
	Open               int64
	// FailedAgain counts the letters, of those that are still in the topic, that were redriven and
	// failed again.
	FailedAgain int64
	// First and Last are when the first and the last of them failed.
	First, Last time.Time
	// Groups are the consumer groups that failed so, Versions the versions of their services, and
	// Reasons the reasons of the letters, each sorted.
	Groups, Versions, Reasons []string
	// Sample is the message of the first letter of the group that the index read, which is the one
	// at Partition and Offset.
	Sample    string
	Partition int32
	Offset    int64
	// FirstSeen is of all letters of the class and fingerprint that the filter may select by what
	// they have in common: open or not, and of whatever time.
	FirstSeen FirstSeen
}

// Progress is how far an index is.
type Progress struct {
	// Complete is when the last refresh that missed nothing began, but for what a newer siding
	// wrote; zero if there was none.
	Complete time.Time
	// Read is when the last refresh began that read letters, perhaps not those of all partitions;
	// zero if there was none.
	Read time.Time
	// Letters is how many letters the index has, and Unread how many offsets the refresh under way
	// has still to read.
	Letters, Unread int64
	// Problem is why the last refresh missed something; nil if it did not.
	Problem error
}
