package headers

import (
	"slices"
	"time"

	"github.com/sidingkafka/siding/classify"
)

// Limits of what is written. What is read from elsewhere is cut to them, or
// refused where cutting would change its meaning.
const (
	MaxMessage  = 1024              // bytes of dlq-error-msg
	MaxStack    = classify.MaxStack // bytes of dlq-error-stack
	MaxHistory  = 2048              // bytes of dlq-history
	MaxAttempts = 1_000_000         // the largest dlq-attempts and dlq-redrive-count

	maxNote      = 256    // version, environment, host, traceparent
	maxRedriveID = 256    // dlq-redrive-id
	maxGroup     = 32_767 // Kafka's longest string
)

// Meta is the story of a record on a retry topic or in a DLQ. A zero field is a
// header that is not there, except Attempts and the numbers of a Position.
type Meta struct {
	// Original is where the record was first read.
	Original Position
	// Group is the consumer group whose handler failed.
	Group string
	// Attempts counts deliveries so far. 0 is a record that was redriven, or
	// held and never run.
	Attempts int
	// Class, Message, Fingerprint and Stack are of the last failure. Stack is
	// written to a DLQ only.
	Class, Message, Fingerprint, Stack string
	// Reason makes the record a dead letter: it decides which headers Append
	// writes. It is empty on a retry topic.
	Reason Reason
	// FirstFailedAt and FailedAt are the times of the first and the last
	// failure. NotBefore is when the record is due; retry topics only. All
	// times carry milliseconds.
	FirstFailedAt, FailedAt, NotBefore time.Time
	// History has the deliveries, oldest first.
	History []Attempt
	// Redrive says which run brought the record back, if one did.
	Redrive Redrive
	// TraceParent is the W3C traceparent of the last attempt's span.
	TraceParent string
	// Held marks a record that waits behind its key's head and has not failed
	// itself; retry topics only. ValueOmitted marks a dead letter whose value
	// did not fit.
	Held, ValueOmitted bool
	// Hops counts the copies written since the source or since redrive, this
	// one included.
	Hops int
	// Version, Environment and Host say who failed the record.
	Version, Environment, Host string
}

// Attempt is one delivery that failed.
type Attempt struct {
	Number int
	Class  string
	At     time.Time
}

// Redrive is the mark of a redrive run on a record that it brought back. The
// zero value is a record that was never redriven.
type Redrive struct {
	// ID names the run.
	ID string
	// Count is how often the record was brought back, this time included.
	Count int
	// From is where the dead letter stands: topic, partition and offset.
	From Position
	// Original is where the record was first read before a run brought it back to
	// its source, where its copy has another offset: topic, partition and offset.
	// It is zero where the record never went back that far.
	Original Position
}

// Fail takes down one more delivery that failed: it counts the attempt, sets
// the last error (message is what may be shown of it, after redaction) and the
// times, adds to the history, and clears Reason, NotBefore and Held, which are
// for the caller to set anew. Copies of m made earlier keep their history.
func (m *Meta) Fail(r classify.Result, message string, at time.Time) {
	m.Attempts = min(m.Attempts+1, MaxAttempts)
	m.Class, m.Fingerprint, m.Stack, m.Message = r.Class, r.Fingerprint, r.Stack, message
	m.FailedAt = at
	if m.FirstFailedAt.IsZero() {
		m.FirstFailedAt = at
	}
	m.Reason, m.NotBefore, m.Held = "", time.Time{}, false
	h := m.writtenHistory()
	m.History = append(slices.Clip(h), Attempt{Number: m.Attempts, Class: r.Class, At: at})
}
