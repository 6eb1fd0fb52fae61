package reserved

// Key is the number of a reserved key.
type Key uint8

// The keys. User is any key that is not reserved.
const (
	User Key = iota

	// The values of these are kept as text.
	OriginalTopic
	Group
	ErrorClass
	ErrorFingerprint
	ErrorMessage
	ErrorStack
	FailureReason
	History
	TraceParent
	ConsumerVersion
	Environment
	Host
	RedriveID
	RedriveFrom
	RedriveOriginal

	// The values of these are parsed into a number, a time or a flag.
	OriginalTopicID
	OriginalPartition
	OriginalOffset
	OriginalTimestamp
	Attempts
	FirstFailedAt
	FailedAt
	NotBefore
	Held
	Hops
	RedriveCount
	RedriveAt
	RedriveMaxAttempts
	ValueOmitted

	// Meta is the header that holds the fields: the values of all keys that have no header of their
	// own, see [Field].
	Meta

	Count
)

// The keys from FirstText to LastText are those whose values are kept as text.
const (
	FirstText = OriginalTopic
	LastText  = RedriveOriginal
)

var names = [Count]string{
	OriginalTopic:      "dlq-original-topic",
	Group:              "dlq-group",
	ErrorClass:         "dlq-error-class",
	ErrorFingerprint:   "dlq-error-fingerprint",
	ErrorMessage:       "dlq-error-msg",
	ErrorStack:         "dlq-error-stack",
	FailureReason:      "dlq-reason",
	History:            "dlq-history",
	TraceParent:        "dlq-traceparent",
	ConsumerVersion:    "dlq-consumer-version",
	Environment:        "dlq-environment",
	Host:               "dlq-host",
	RedriveID:          "dlq-redrive-id",
	RedriveFrom:        "dlq-redrive-from",
	RedriveOriginal:    "dlq-redrive-original",
	OriginalTopicID:    "dlq-original-topic-id",
	OriginalPartition:  "dlq-original-partition",
	OriginalOffset:     "dlq-original-offset",
	OriginalTimestamp:  "dlq-original-timestamp",
	Attempts:           "dlq-attempts",
	FirstFailedAt:      "dlq-first-failed-at",
	FailedAt:           "dlq-failed-at",
	NotBefore:          "dlq-not-before",
	Held:               "dlq-held",
	Hops:               "dlq-hops",
	RedriveCount:       "dlq-redrive-count",
	RedriveAt:          "dlq-redrive-at",
	RedriveMaxAttempts: "dlq-redrive-max-attempts",
	ValueOmitted:       "dlq-value-omitted",
	Meta:               "dlq-meta",
}

// String returns the key's text; it is empty for User.
func (k Key) String() string { return names[k] }

// Of returns the number of a key.
func Of(key string) Key {
	if len(key) >= len("dlq-held") {
		if s := &slots[slot(key)]; s.name == key {
			return s.key
		}
	}
	return User
}

// slots has each key in a slot of its own, so that Of compares one text.
var slots = func() (t [128]struct {
	name string
	key  Key
},
) {
	for k := User + 1; k < Count; k++ {
		s := &t[slot(names[k])]
		s.name, s.key = names[k], k
	}
	return t
}()

// slot gives each key another number. Its factors were found by trying; a key that shares its slot
// with another one needs new factors.
func slot(key string) byte { return (15*byte(len(key)) + key[4] + key[len(key)-1]) & 127 }
