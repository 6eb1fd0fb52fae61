package headers

import "github.com/sidingkafka/siding/internal/reserved"

// The keys of the headers that siding writes. Until dlq-meta came, each of its fields had a header
// of its own; those keys are reserved too, and [Parse] reads them.
const (
	OriginalTopic     = "dlq-original-topic"
	OriginalPartition = "dlq-original-partition"
	OriginalOffset    = "dlq-original-offset"
	Group             = "dlq-group"
	Attempts          = "dlq-attempts"
	ErrorClass        = "dlq-error-class"
	ErrorMessage      = "dlq-error-msg"
	ErrorStack        = "dlq-error-stack"
	FailureReason     = "dlq-reason"
	FailedAt          = "dlq-failed-at"
	NotBefore         = "dlq-not-before"
	MetaFields        = "dlq-meta"
)

// Reserved reports whether key is one of siding's. All other keys belong to the user, also those
// that start with "dlq-".
func Reserved(key string) bool { return reserved.Of(key) != reserved.User }
