package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// sendTime bounds a try, from the first name that is looked up to the last byte of the answer.
	sendTime = 15 * time.Second
	// mostAnswer is how much of an answer is read, in bytes.
	mostAnswer = 64 << 10
	// mostQuoted is how much of a refusal an error quotes, in bytes.
	mostQuoted = 200
)

// exchange is the transport of one try: all requests of a service go through it. It ends them with
// the try, reads a bounded part of their answers, and makes an error of each answer but 2xx. So no
// client follows a redirect, whatever the service thinks of its status.
type exchange struct {
	ctx    context.Context //nolint:containedctx // the services do not pass on the context of a try
	base   http.RoundTripper
	sent   atomic.Bool // a request was written
	failed error       // of the first request that failed; no further ones are sent
}

func newExchange(ctx context.Context, base http.RoundTripper) *exchange {
	x := &exchange{base: base}
	x.ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(i httptrace.WroteRequestInfo) { x.sent.Store(i.Err == nil) }})
	return x
}

// ownTransport returns a transport like the process's own, with connections that nothing else
// closes.
func ownTransport() http.RoundTripper {
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		return t.Clone()
	}
	return http.DefaultTransport
}

// RoundTrip implements http.RoundTripper.
func (x *exchange) RoundTrip(r *http.Request) (*http.Response, error) {
	if x.failed != nil {
		return nil, x.failed
	}
	x.sent.Store(false)
	answer, err := x.base.RoundTrip(r.WithContext(x.ctx))
	if err != nil {
		x.failed = err
		return nil, err
	}
	// The status is the answer. What goes wrong with the rest of it changes nothing.
	text, _ := io.ReadAll(io.LimitReader(answer.Body, mostAnswer))
	answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		x.failed = &statusError{answer.StatusCode, string(text), retryAfter(answer)}
		return nil, x.failed
	}
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return answer, nil
}

// statusError is an answer that accepts nothing.
type statusError struct {
	status int
	text   string
	after  time.Duration // from which on it may be asked again; zero if it did not say
}

// retryAfter returns how long a receiver that has no room asks to wait: RFC 9110, 10.2.3.
func retryAfter(answer *http.Response) time.Duration {
	said := answer.Header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(said, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(said); err == nil {
		return time.Until(at)
	}
	return 0
}

func (e *statusError) Error() string {
	said := fmt.Sprintf("it answered %d %s", e.status, http.StatusText(e.status))
	if e.status/100 == 3 {
		return said + ": redirects are not followed"
	}
	if text := strings.TrimSpace(e.text); text != "" {
		said += fmt.Sprintf(": %q", text[:min(len(text), mostQuoted)])
	}
	return said
}

// errRefused is an answer of 200 that says no.
var errRefused = errors.New("it refused the message")

// isRefusal reports whether a receiver that is asked again would answer the same.
func isRefusal(err error) bool {
	if e, ok := errors.AsType[*statusError](err); ok {
		return e.status/100 == 4 && e.status != http.StatusRequestTimeout && e.status != http.StatusTooManyRequests
	}
	if e, ok := errors.AsType[*textproto.Error](err); ok { // RFC 5321, 4.2.1
		return e.Code/100 == 5
	}
	return errors.Is(err, errRefused)
}

// errUnanswered says that it is unknown whether a receiver accepted a message.
var errUnanswered = fmt.Errorf("no answer within %v: it may have accepted the message", sendTime)
