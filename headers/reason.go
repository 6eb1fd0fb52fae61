package headers

// Reason is why a record is in the DLQ. If several reasons apply the most specific one counts: the
// one that comes first below.
type Reason string

const (
	// ReasonCrashLoop: the process died several times while running it. The delivery is one of
	// Attempts, however many processes died; Message says how many did. FailedAt is the time of the
	// letter.
	ReasonCrashLoop Reason = "crash-loop"
	// ReasonPanic: the handler, or its decoder, panicked.
	ReasonPanic Reason = "panic"
	// ReasonMalformed: its headers on a retry topic were invalid.
	ReasonMalformed Reason = "malformed"
	// ReasonUnsupportedVersion: its schema has a version that the service does not know yet.
	ReasonUnsupportedVersion Reason = "unsupported-version"
	// ReasonDecode: its payload could not be parsed.
	ReasonDecode Reason = "decode"
	// ReasonUnroutable: no handler is registered for it.
	ReasonUnroutable Reason = "unroutable"
	// ReasonTooLarge: with its headers it did not fit into a retry topic.
	ReasonTooLarge Reason = "too-large"
	// ReasonHeld: it waited behind a record of its key that was dead-lettered.
	ReasonHeld Reason = "held"
	// ReasonExpired: its failure is retryable, but its time was over.
	ReasonExpired Reason = "expired"
	// ReasonExhausted: its failure is retryable, but its attempts were used up.
	ReasonExhausted Reason = "exhausted"
	// ReasonTerminal: its failure is one that a retry does not repair.
	ReasonTerminal Reason = "terminal"
)
