package consumer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/retrytopics"
)

// StuckError is returned by Run when handlers ignored that they were cancelled. Their goroutines,
// and only they, outlive Run; their records stay uncommitted and run again under the next owner.
type StuckError struct {
	// Records are where the records stand that the handlers were given: on their source or on a
	// retry topic.
	Records []headers.Position
}

func newStuckError(attempts []*attempt) *StuckError {
	e := &StuckError{}
	for _, a := range attempts {
		e.Records = append(e.Records, a.physical())
	}
	return e
}

func (e *StuckError) Error() string {
	var at []string
	for _, p := range e.Records {
		at = append(at, p.String())
	}
	return fmt.Sprintf("consumer: %d handlers ignored that their context was cancelled, on %s: have them return when ctx is done",
		len(e.Records), strings.Join(at, ", "))
}

// ErrRunning is returned by a second Run: a consumer runs once.
var ErrRunning = errors.New("consumer: Run was called before; make a new consumer to run again")

// refusedError is why Run ends by itself.
type refusedError struct{ error }

// ErrDraining is the cause (context.Cause) of an attempt's context that was cancelled because its
// lane is given up, by a rebalance or by shutdown, and the drain time is over. An attempt that
// returns an error then is neither a failure nor an attempt: the record runs again under its next
// owner. It is a context.Canceled to errors.Is: a handler that shares work with one of another lane
// may get it, and its own attempt is retried.
var ErrDraining = fmt.Errorf("siding: the lane is draining: %w", context.Canceled)

// ErrHandlerTimeout is the cause of an attempt's context that ran past Policy.HandlerTimeout. It is
// a context.DeadlineExceeded to errors.Is, and a net.Error whose Timeout is true: a handler may
// return it, and its record is retried with class timeout.
var ErrHandlerTimeout error = handlerTimeout{}

type handlerTimeout struct{}

func (handlerTimeout) Error() string { return "siding: the handler ran past its timeout" }

func (handlerTimeout) Timeout() bool { return true }

func (handlerTimeout) Temporary() bool { return true }

func (handlerTimeout) Unwrap() error { return context.DeadlineExceeded }

// refusesUs reports whether an error says that who asks is not known, or may not do this.
func refusesUs(err error) bool {
	for _, refusal := range []*kerr.Error{
		kerr.SaslAuthenticationFailed, kerr.UnsupportedSaslMechanism, kerr.IllegalSaslState,
		kerr.ClusterAuthorizationFailed, kerr.GroupAuthorizationFailed, kerr.TopicAuthorizationFailed,
	} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}

// transient reports whether an error at the start may pass by itself: a broker that is not there
// yet, a leader election.
func transient(err error) bool {
	var undone *retrytopics.UndoneError
	if errors.As(err, &undone) {
		return false
	}
	var code *kerr.Error
	if errors.As(err, &code) {
		return code.Retriable && !errors.Is(err, kerr.UnknownTopicOrPartition)
	}
	var n net.Error
	return errors.As(err, &n) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.DeadlineExceeded)
}

// textOf is what may be shown of an error: what the user's function makes of it, if there is one,
// or its own message. That function is foreign code.
func textOf(err error, message string, shown func(error) string) (s string) {
	defer func() {
		if v := recover(); v != nil {
			s = fmt.Sprintf("the error's text could not be had: panic: %v", v)
		}
	}()
	if shown != nil {
		return shown(err)
	}
	return message
}
