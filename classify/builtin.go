package classify

import (
	"context"
	"io"
	"net/url"
	"strconv"
	"syscall"
	"time"
)

// opinion is what one source says; an empty class or a missing verdict leaves
// that part to the next source.
type opinion struct {
	class   string
	verdict Verdict
	decided bool // verdict is one
}

func says(class string, v Verdict) opinion { return opinion{class, v, true} }

// builtin returns the opinion on err itself, not on what it wraps. vague is
// true where anything inside it that has an opinion knows better.
func builtin(err error, s *shape) (o opinion, vague bool) {
	defer survive()
	switch err {
	case context.DeadlineExceeded:
		return says(ClassTimeout, VerdictRetry), false
	case context.Canceled:
		return says(ClassCanceled, VerdictRetry), false
	case io.ErrUnexpectedEOF:
		return says("net.eof", VerdictRetry), false
	}
	if errno, ok := err.(syscall.Errno); ok {
		// Every Errno has the methods of a net.Error, ENOENT included.
		return ofErrno(errno), false
	}
	if s.has&isDecode != 0 {
		return says(ClassDecode, VerdictTerminal), false
	}
	if s.has&(hasStatusCode|hasHTTPStatusCode|hasHTTPCode) != 0 {
		if o := ofHTTP(statusOf(err, s)); o.class != "" {
			return o, false
		}
	}
	if s.has&hasSQLState != 0 {
		if o := ofSQL(err.(sqlState).SQLState()); o.class != "" {
			return o, false
		}
	}
	if s.has&hasGRPCStatus != 0 {
		if o := ofGRPC(err); o.class != "" {
			return o, false
		}
	}
	if s.has&hasIs != 0 {
		// The dialer's own types for a context that ended say so by Is.
		switch is := err.(interface{ Is(error) bool }); {
		case is.Is(context.DeadlineExceeded):
			return says(ClassTimeout, VerdictRetry), false
		case is.Is(context.Canceled):
			return says(ClassCanceled, VerdictRetry), false
		}
	}
	if s.has&isDNS != 0 {
		return says("net.dns", VerdictRetry), false
	}
	if s.has&isNet != 0 {
		return ofNet(err), true
	}
	return opinion{}, false
}

func ofErrno(errno syscall.Errno) opinion {
	switch errno {
	case syscall.ECONNREFUSED:
		return says("net.refused", VerdictRetry)
	case syscall.ECONNRESET:
		return says("net.reset", VerdictRetry)
	case syscall.ECONNABORTED:
		return says("net.aborted", VerdictRetry)
	case syscall.EPIPE:
		return says("net.pipe", VerdictRetry)
	case syscall.ETIMEDOUT:
		return says("net.timeout", VerdictRetry)
	case syscall.EHOSTUNREACH, syscall.ENETUNREACH:
		return says("net.unreachable", VerdictRetry)
	}
	return opinion{}
}

func ofNet(err error) opinion {
	if u, ok := err.(*url.Error); ok && u.Op == "parse" {
		return opinion{} // a URL that is none will not become one
	}
	if err.(netError).Timeout() {
		return says("net.timeout", VerdictRetry)
	}
	return says("net.error", VerdictRetry)
}

func statusOf(err error, s *shape) int {
	switch {
	case s.has&hasStatusCode != 0:
		return err.(statusCode).StatusCode()
	case s.has&hasHTTPStatusCode != 0:
		return err.(httpStatusCode).HTTPStatusCode()
	default:
		return err.(httpCode).HTTPCode()
	}
}

// ofHTTP has no opinion below 400: there the failure was not the response.
func ofHTTP(code int) opinion {
	if code < 400 || code > 599 {
		return opinion{}
	}
	class := "http." + strconv.Itoa(code)
	switch {
	case code >= 500,
		code == 408, // Request Timeout
		code == 425, // Too Early
		code == 429: // Too Many Requests
		return says(class, VerdictRetry)
	}
	return says(class, VerdictTerminal)
}

// ofSQL goes by the class of the SQLSTATE, its first two characters. The names
// are those of the SQL standard and of PostgreSQL's appendix A.
func ofSQL(state string) opinion {
	if len(state) != 5 || !ValidClass(state) {
		return opinion{}
	}
	class := "sql." + state
	switch state[:2] {
	case "08", // connection exception
		"40", // transaction rollback: serialization failure, deadlock
		"53": // insufficient resources
		return says(class, VerdictRetry)
	case "57": // operator intervention
		if state[2] == 'P' { // shutdown, crash, cannot connect now
			return says(class, VerdictRetry)
		}
	case "22", // data exception
		"23", // integrity constraint violation
		"42": // syntax error, undefined table, insufficient privilege
		return says(class, VerdictTerminal)
	}
	return opinion{class: class}
}

// delayOf returns how long err itself asks to wait.
func delayOf(err error) (d time.Duration) {
	defer survive()
	return max(err.(retryAfter).RetryAfter(), 0)
}
