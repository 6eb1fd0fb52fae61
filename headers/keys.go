package headers

// The reserved keys.
const (
	OriginalTopic     = "dlq-original-topic"
	OriginalTopicID   = "dlq-original-topic-id"
	OriginalPartition = "dlq-original-partition"
	OriginalOffset    = "dlq-original-offset"
	OriginalTimestamp = "dlq-original-timestamp"
	Group             = "dlq-group"
	Attempts          = "dlq-attempts"
	ErrorClass        = "dlq-error-class"
	ErrorFingerprint  = "dlq-error-fingerprint"
	ErrorMessage      = "dlq-error-msg"
	ErrorStack        = "dlq-error-stack"
	FailureReason     = "dlq-reason"
	FirstFailedAt     = "dlq-first-failed-at"
	FailedAt          = "dlq-failed-at"
	NotBefore         = "dlq-not-before"
	Held              = "dlq-held"
	Hops              = "dlq-hops"
	History           = "dlq-history"
	TraceParent       = "dlq-traceparent"
	ConsumerVersion   = "dlq-consumer-version"
	Environment       = "dlq-environment"
	Host              = "dlq-host"
	RedriveID         = "dlq-redrive-id"
	RedriveCount      = "dlq-redrive-count"
	RedriveFrom       = "dlq-redrive-from"
	RedriveOriginal   = "dlq-redrive-original"
	ValueOmitted      = "dlq-value-omitted"
)

// Reserved reports whether key is one of siding's. All other keys belong to the user, also those
// that start with "dlq-".
func Reserved(key string) bool { return keyOf(key) != userKey }

// key numbers the reserved keys, so that a parser needs no map.
type key uint8

const (
	userKey key = iota

	// Values kept as text.
	originalTopic
	group
	errorClass
	errorFingerprint
	errorMessage
	errorStack
	failureReason
	history
	traceParent
	consumerVersion
	environment
	host
	redriveID
	redriveFrom
	redriveOriginal

	// Values parsed into a number, a time or a flag.
	originalTopicID
	originalPartition
	originalOffset
	originalTimestamp
	attempts
	firstFailedAt
	failedAt
	notBefore
	held
	hops
	redriveCount
	valueOmitted

	numKeys
)

const firstText, lastText = originalTopic, redriveOriginal

func keyOf(s string) key {
	if len(s) < len(Held) || s[:4] != "dlq-" {
		return userKey // nearly every header
	}
	switch s {
	case OriginalTopic:
		return originalTopic
	case OriginalTopicID:
		return originalTopicID
	case OriginalPartition:
		return originalPartition
	case OriginalOffset:
		return originalOffset
	case OriginalTimestamp:
		return originalTimestamp
	case Group:
		return group
	case Attempts:
		return attempts
	case ErrorClass:
		return errorClass
	case ErrorFingerprint:
		return errorFingerprint
	case ErrorMessage:
		return errorMessage
	case ErrorStack:
		return errorStack
	case FailureReason:
		return failureReason
	case FirstFailedAt:
		return firstFailedAt
	case FailedAt:
		return failedAt
	case NotBefore:
		return notBefore
	case Held:
		return held
	case Hops:
		return hops
	case History:
		return history
	case TraceParent:
		return traceParent
	case ConsumerVersion:
		return consumerVersion
	case Environment:
		return environment
	case Host:
		return host
	case RedriveID:
		return redriveID
	case RedriveCount:
		return redriveCount
	case RedriveFrom:
		return redriveFrom
	case RedriveOriginal:
		return redriveOriginal
	case ValueOmitted:
		return valueOmitted
	}
	return userKey
}

// keyNames maps a key to its text.
var keyNames = [numKeys]string{
	originalTopic:     OriginalTopic,
	group:             Group,
	errorClass:        ErrorClass,
	errorFingerprint:  ErrorFingerprint,
	errorMessage:      ErrorMessage,
	errorStack:        ErrorStack,
	failureReason:     FailureReason,
	history:           History,
	traceParent:       TraceParent,
	consumerVersion:   ConsumerVersion,
	environment:       Environment,
	host:              Host,
	redriveID:         RedriveID,
	redriveFrom:       RedriveFrom,
	redriveOriginal:   RedriveOriginal,
	originalTopicID:   OriginalTopicID,
	originalPartition: OriginalPartition,
	originalOffset:    OriginalOffset,
	originalTimestamp: OriginalTimestamp,
	attempts:          Attempts,
	firstFailedAt:     FirstFailedAt,
	failedAt:          FailedAt,
	notBefore:         NotBefore,
	held:              Held,
	hops:              Hops,
	redriveCount:      RedriveCount,
	valueOmitted:      ValueOmitted,
}
