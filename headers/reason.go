package headers

// Reason says why a record is in the DLQ. Of several that apply the most
// specific counts: the one that comes first below.
type Reason string

const (
	// ReasonCrashLoop: the process died several times while running it.
	ReasonCrashLoop Reason = "crash-loop"
	// ReasonPanic: the handler, or its decoder, panicked.
	ReasonPanic Reason = "panic"
	// ReasonMalformed: its headers on a retry topic could not be believed.
	ReasonMalformed Reason = "malformed"
	// ReasonUnsupportedVersion: its schema is of a version that the service does not know yet.
	ReasonUnsupportedVersion Reason = "unsupported-version"
	// ReasonDecode: its payload could not be parsed.
	ReasonDecode Reason = "decode"
	// ReasonUnroutable: no handler is registered for it.
	ReasonUnroutable Reason = "unroutable"
	// ReasonTooLarge: with its headers it did not fit into a retry topic.
	ReasonTooLarge Reason = "too-large"
	// ReasonHeld: it waited behind a record of its key that was dead-lettered.
	ReasonHeld Reason = "held"
	// ReasonExpired: it could be retried, but its time was up.
	ReasonExpired Reason = "expired"
	// ReasonExhausted: it could be retried, but its attempts were used up.
	ReasonExhausted Reason = "exhausted"
	// ReasonTerminal: its failure is one that retrying does not help.
	ReasonTerminal Reason = "terminal"
)
