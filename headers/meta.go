package headers

import (
	"time"

	"github.com/sidingkafka/siding/classify"
)

// Limits of written values. Longer values from elsewhere are cut, or refused if cutting would
// change their meaning.
const (
	MaxMessage        = 1024              // bytes of dlq-error-msg
	MaxStack          = classify.MaxStack // bytes of dlq-error-stack
	MaxHistory        = 2048              // bytes of the history
	MaxHistoryMessage = 128               // bytes of a message in the history, before it is encoded
	MaxAttempts       = 1_000_000         // the largest number of attempts, hops and redrives

	MaxRedriveAttempts    = 100      // the largest bound that a run may set
	maxNote, maxRedriveID = 256, 256 // version, environment, host, traceparent; Redrive.ID
	maxUnknown            = 4 << 10  // all fields of later versions
)

// Meta describes a record on a retry topic or in a DLQ. A zero field means that the header is
// missing, except for Attempts and the numbers of a Position.
type Meta struct {
	// Original is the position where the record was first read.
	Original Position
	// Group is the consumer group whose handler failed.
	Group string
	// Attempts counts the deliveries so far. It is 0 for a record that was redriven, or held and
	// never run.
	Attempts int
	// Class, Message, Fingerprint and Stack describe the last failure. Stack is written to a DLQ
	// only.
	Class, Message, Fingerprint, Stack string
	// Reason marks a dead letter, and decides which headers Append writes. It is empty on a retry
	// topic.
	Reason Reason
	// FirstFailedAt and FailedAt are the times of the first and the last failure. NotBefore is when
	// the record is due, on retry topics only. All times have milliseconds.
	FirstFailedAt, FailedAt, NotBefore time.Time
	// History has the failed calls, oldest first, those before a redrive included.
	History []Attempt
	// Redrive names the run that redrove the record, if one did.
	Redrive Redrive
	// TraceParent is the W3C traceparent of the last attempt's span.
	TraceParent string
	// Held marks a record that waits behind its key's head without a failure of its own, on retry
	// topics only. ValueOmitted marks a dead letter whose value did not fit.
	Held, ValueOmitted bool
	// Hops counts the copies since the source or since the redrive, this one included.
	Hops int
	// Version, Environment and Host identify the consumer that failed the record.
	Version, Environment, Host string
	// Unknown has the fields of dlq-meta that this version does not know, as text, so that a copy
	// passes them on.
	Unknown string
}

// Attempt is one failed call of the handler.
type Attempt struct {
	// Number counts the deliveries. It begins at 1 again when the record is redriven, and the
	// history goes on.
	Number int
	// Run numbers the calls within one delivery, in-place retries included, from 1. It is 0 for the
	// only call.
	Run   int
	Class string
	At    time.Time
	// Verdict is that of the failure: retry, terminal or discard. It is empty if siding wrote the
	// entry before it kept verdicts and messages.
	Verdict string
	// Message is the beginning of the failure's message, as in [Meta].Message: at most
	// [MaxHistoryMessage] bytes.
	Message string
}

// Redrive is the mark of a run on a record that it redrove. The zero value means that the record
// was never redriven.
type Redrive struct {
	// ID names the run.
	ID string
	// Count is the number of redrives of the record, this one included.
	Count int
	// From is the position of the dead letter: topic, partition and offset.
	From Position
	// Original is where the record was first read: topic, partition and offset. It is set if a run
	// redrove the record to its source, where the copy has another offset. Otherwise it is zero.
	Original Position
	// At is the time of the redrive. Policy.MaxAge of package consumer counts from it.
	At time.Time
	// MaxAttempts bounds the deliveries of the copy, in place of the consumer's own policy; 0 means
	// that the run set no bound.
	MaxAttempts int
}
