package headers

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/reserved"
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
	e.class(reserved.ErrorClass, ClassMalformed)
	e.text(reserved.ErrorMessage, message, MaxMessage)
	e.class(reserved.FailureReason, string(ReasonMalformed))
	e.time(reserved.FailedAt, at)
	ours := e.headers(make([]kgo.RecordHeader, 0, e.n), nil)

	out := make([]kgo.RecordHeader, 0, len(h)+len(ours))
	for i := range h {
		switch reserved.Of(h[i].Key) {
		case reserved.FailureReason, reserved.ErrorClass, reserved.ErrorMessage, reserved.FailedAt:
		default:
			out = append(out, h[i])
		}
	}
	return append(out, ours...)
}
