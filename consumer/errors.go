package consumer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer/internal/logline"
	"github.com/sidingkafka/siding/consumer/internal/offsets"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/retrytopics"
)

// StuckError is the error of Run when handlers ignored their cancellation. Their goroutines, and no
// others, outlive Run. Their records stay uncommitted, and run again under the next owner.
type StuckError struct {
	// Records are the positions of the records that these handlers were given, on a source or a
	// retry topic.
	Records []headers.Position
}

func (e *StuckError) Error() string {
	var at []string
	for _, p := range e.Records {
		at = append(at, p.String())
	}
	return fmt.Sprintf("consumer: %d handlers ignored the cancellation of their context, on %s: make them return when ctx is done",
		len(e.Records), strings.Join(at, ", "))
}

// ErrRunning is returned by a second call of Run: a consumer runs once.
var ErrRunning = errors.New("consumer: Run was called before; make a new consumer to run again")

// refusedError is why Run ends without its context's end.
type refusedError struct{ error }

// ErrDraining is the cause (context.Cause) of an attempt's context that was cancelled for its lane:
// the lane was lost, or was revoked by a rebalance or shutdown and did not drain within
// DrainTimeout. An error that the attempt returns then does not count as a failure, nor the run as
// an attempt: the record runs again under its next owner.
//
// errors.Is takes it for a context.Canceled. A handler that shares work with one of another lane
// may get it too, and its own attempt is then retried.
var ErrDraining = fmt.Errorf("siding: the lane is draining: %w", context.Canceled)

// ErrHandlerTimeout is the cause of an attempt's context that ran past Policy.HandlerTimeout.
// errors.Is takes it for a context.DeadlineExceeded, and it is a net.Error whose Timeout is true. A
// record whose handler returns it is retried, with class timeout.
var ErrHandlerTimeout error = handlerTimeout{}

type handlerTimeout struct{}

func (handlerTimeout) Error() string { return "siding: the handler ran past its timeout" }

func (handlerTimeout) Timeout() bool { return true }

func (handlerTimeout) Temporary() bool { return true }

func (handlerTimeout) Unwrap() error { return context.DeadlineExceeded }

// refusesUs reports whether a broker refused the client's credentials or lacks a permission for it.
func refusesUs(err error) bool {
	return slices.ContainsFunc([]*kerr.Error{
		kerr.SaslAuthenticationFailed, kerr.UnsupportedSaslMechanism, kerr.IllegalSaslState,
		kerr.ClusterAuthorizationFailed, kerr.GroupAuthorizationFailed, kerr.TopicAuthorizationFailed,
	}, func(refusal *kerr.Error) bool { return errors.Is(err, refusal) })
}

// connecting explains an error of the first request to the brokers, if they refuse the client's
// credentials: the errors of brokers name neither the broker nor what is to be changed.
func connecting(err error, cl *kgo.Client) error {
	hint := ""
	switch {
	case errors.Is(err, kerr.IllegalSaslState):
		hint = "that listener takes no credentials: use the port of a listener with SASL, or remove kgo.SASL"
	case errors.Is(err, kerr.UnsupportedSaslMechanism):
		hint = "that listener has other mechanisms of SASL: change the one in kgo.SASL, or use another listener"
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		hint = "that listener refuses the credentials in kgo.SASL"
	default:
		return err
	}
	brokers, _ := cl.OptValue(kgo.SeedBrokers).([]string)
	return fmt.Errorf("connecting to %s: %w; %s", strings.Join(brokers, ", "), err, hint)
}

// transient reports whether an error at the start may pass by itself, such as an unreachable broker
// or a leader election.
func transient(err error) bool {
	var refused *retrytopics.ProvisionError
	if errors.As(err, &refused) {
		return false
	}
	var code *kerr.Error
	if errors.As(err, &code) {
		return code.Retriable && !errors.Is(err, kerr.UnknownTopicOrPartition)
	}
	var n net.Error
	return errors.As(err, &n) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.DeadlineExceeded)
}

// textOf returns the text of an error for display: the result of the user's function, if there is
// one, or the error's message. It recovers a panic of that function, whose value may be the text
// that the function is there to hide: only Go's own panics are shown.
func textOf(err error, message string, shown func(error) string) (s string) {
	defer func() {
		if v := recover(); v != nil {
			s = fmt.Sprintf("no text for the error: Config.ErrorText panicked with a %T", v)
			if own, ok := v.(runtime.Error); ok {
				s = "no text for the error: Config.ErrorText panicked: " + own.Error()
			}
		}
	}()
	if shown != nil {
		return shown(err)
	}
	return message
}

// mostError is how much of an error's text waits for its line, which may leave out some of it: the
// indentation of a stack.
const mostError = 2 * logline.MaxText

// cut returns at most n bytes of a text. It does not keep the rest in memory.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.Clone(text[:n])
}

// Classes of records that killed the process.
const (
	classCrashed         = "crash.handler"
	classCrashedDecoding = "crash.decode"
)

// crashError is the failure of a record that killed processes. It does not run again.
type crashError struct {
	offsets.Alone
	deaths int       // in a row, as commits have them
	by     time.Time // when the lane's owner read that the last one had died
}

// Error says what commits say, which do not distinguish a process that died from one that was
// expelled from the group. A process may also have died before its first commit.
func (e *crashError) Error() string {
	in := "its handler"
	if e.Decoding {
		in = "its decoder"
	}
	return fmt.Sprintf("at least %d processes in a row died, or lost the partition, before it was finished; the last one, by %s, while nothing but %s ran",
		e.deaths, e.by.UTC().Format("2006-01-02T15:04:05.000Z"), in)
}

// classified is the failure's result. No rule of the team's sees it.
func (e *crashError) classified() classify.Result {
	class := classCrashed
	if e.Decoding {
		class = classCrashedDecoding
	}
	var none *classify.Classifier
	return none.Classify(classify.As(classify.Terminal(e), class))
}
