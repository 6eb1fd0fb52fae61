package headers

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// ClassMalformed is the class of a record with invalid headers.
const ClassMalformed = "malformed"

// Malformed returns the headers of the dead letter of a record on a retry topic that Parse or
// CheckRetry refused with err. It keeps all of h as found, invalid headers and duplicates too,
// since they may explain the fault. It replaces only dlq-reason, dlq-error-class, dlq-error-msg
// (the text of err) and dlq-failed-at. It does not change h.
func Malformed(h []kgo.RecordHeader, err error, at time.Time) []kgo.RecordHeader {
	message := "malformed headers"
	if err != nil {
		message = err.Error()
	}
	e := encoder{buf: make([]byte, 0, len(ClassMalformed)+min(len(message), MaxMessage)+len(ReasonMalformed)+13)}
	e.class(errorClass, ClassMalformed)
	e.text(errorMessage, message, MaxMessage)
	e.class(failureReason, string(ReasonMalformed))
	e.time(failedAt, at)
	ours := e.headers(make([]kgo.RecordHeader, 0, e.n), nil)

	out := make([]kgo.RecordHeader, 0, len(h)+len(ours))
	for i := range h {
		switch keyOf(h[i].Key) {
		case failureReason, errorClass, errorMessage, failedAt:
		default:
			out = append(out, h[i])
		}
	}
	return append(out, ours...)
}
