package headers

import "github.com/sidingkafka/siding/internal/reserved"

// The reserved keys.
const (
	OriginalTopic      = "dlq-original-topic"
	OriginalTopicID    = "dlq-original-topic-id"
	OriginalPartition  = "dlq-original-partition"
	OriginalOffset     = "dlq-original-offset"
	OriginalTimestamp  = "dlq-original-timestamp"
	Group              = "dlq-group"
	Attempts           = "dlq-attempts"
	ErrorClass         = "dlq-error-class"
	ErrorFingerprint   = "dlq-error-fingerprint"
	ErrorMessage       = "dlq-error-msg"
	ErrorStack         = "dlq-error-stack"
	FailureReason      = "dlq-reason"
	FirstFailedAt      = "dlq-first-failed-at"
	FailedAt           = "dlq-failed-at"
	NotBefore          = "dlq-not-before"
	Held               = "dlq-held"
	Hops               = "dlq-hops"
	History            = "dlq-history"
	TraceParent        = "dlq-traceparent"
	ConsumerVersion    = "dlq-consumer-version"
	Environment        = "dlq-environment"
	Host               = "dlq-host"
	RedriveID          = "dlq-redrive-id"
	RedriveCount       = "dlq-redrive-count"
	RedriveFrom        = "dlq-redrive-from"
	RedriveOriginal    = "dlq-redrive-original"
	RedriveAt          = "dlq-redrive-at"
	RedriveMaxAttempts = "dlq-redrive-max-attempts"
	ValueOmitted       = "dlq-value-omitted"
)

// Reserved reports whether key is one of siding's. All other keys belong to the user, also those
// that start with "dlq-".
func Reserved(key string) bool { return reserved.Of(key) != reserved.User }
