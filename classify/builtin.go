package classify

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"net/url"
	"strconv"
	"syscall"
	"time"
)

// builtin returns the opinion on err itself, not on the errors that it wraps. vague is true if an
// opinion on a wrapped error should win.
func builtin(err error, s *shape) (o opinion, vague bool) {
	defer survive()
	switch err {
	case context.DeadlineExceeded:
		return withVerdict(ClassTimeout, VerdictRetry), false
	case context.Canceled:
		return withVerdict(ClassCanceled, VerdictRetry), false
	case io.EOF, io.ErrUnexpectedEOF:
		return withVerdict(classEOF, VerdictRetry), false
	case driver.ErrBadConn, sql.ErrConnDone:
		return withVerdict(classConnection, VerdictRetry), false
	}
	if errno, ok := err.(syscall.Errno); ok {
		// Every Errno has the methods of a net.Error, ENOENT included.
		return ofErrno(errno), false
	}
	if s.has&isDecode != 0 {
		return withVerdict(ClassDecode, VerdictTerminal), false
	}
	if s.has&hasErrorCode != 0 {
		if o := ofAWS(err.(errorCode).ErrorCode()); o.class != "" {
			return o, false
		}
	}
	if s.has&(hasStatusCode|hasHTTPStatusCode|hasHTTPCode) != 0 {
		code := statusOf(err, s)
		if o := ofHTTP(code); o.class != "" {
			// AWS throttles with a status that blames the request; the code inside shows the
			// throttling.
			return o, code == 400 && s.has&hasHTTPStatusCode != 0
		}
	}
	if s.has&hasSQLState != 0 {
		if o := ofSQL(err.(sqlState).SQLState()); o.class != "" {
			return o, false
		}
	}
	if s.has&(isMySQL|isKafka|isRedis|isPlain) != 0 {
		if o := ofClient(err, s); o.class != "" {
			return o, false
		}
	}
	if s.grpc != nil {
		if o := ofGRPC(s.grpc.codeOf(err)); o.class != "" {
			return o, false
		}
	}
	if s.has&hasIs != 0 {
		// The dialer's own types for an ended context are recognized by errors.Is.
		switch is := err.(interface{ Is(error) bool }); {
		case is.Is(context.DeadlineExceeded):
			return withVerdict(ClassTimeout, VerdictRetry), false
		case is.Is(context.Canceled):
			return withVerdict(ClassCanceled, VerdictRetry), false
		}
	}
	if s.has&isDNS != 0 {
		return withVerdict("net.dns", VerdictRetry), false
	}
	if s.has&isNet != 0 {
		return ofNet(err), true
	}
	return opinion{}, false
}

func ofErrno(errno syscall.Errno) opinion {
	switch errno {
	case syscall.ECONNREFUSED:
		return withVerdict("net.refused", VerdictRetry)
	case syscall.ECONNRESET:
		return withVerdict("net.reset", VerdictRetry)
	case syscall.ECONNABORTED:
		return withVerdict("net.aborted", VerdictRetry)
	case syscall.EPIPE:
		return withVerdict("net.pipe", VerdictRetry)
	case syscall.ETIMEDOUT:
		return withVerdict("net.timeout", VerdictRetry)
	case syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.ENETDOWN:
		return withVerdict("net.unreachable", VerdictRetry)
	case syscall.EAGAIN, syscall.EINTR, // the same call may succeed now
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM: // resources come back
		return withVerdict("os.unavailable", VerdictRetry)
	}
	return opinion{}
}

func ofNet(err error) opinion {
	if u, ok := err.(*url.Error); ok && u.Op == "parse" {
		return opinion{} // a malformed URL stays malformed
	}
	if err.(netError).Timeout() {
		return withVerdict("net.timeout", VerdictRetry)
	}
	return withVerdict("net.error", VerdictRetry)
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

// ofHTTP has no opinion below 400: such a response was not the failure.
func ofHTTP(code int) opinion {
	if code < 400 || code > 599 {
		return opinion{}
	}
	class := httpClasses[(code-400)*len("http.400"):][:len("http.400")]
	switch {
	case code == 500: // Internal Server Error: an outage and a bug look the same
		return opinion{class: class}
	case code == 501, // Not Implemented
		code == 505: // HTTP Version Not Supported
		return withVerdict(class, VerdictTerminal)
	case code > 500,
		code == 408, // Request Timeout
		code == 425, // Too Early
		code == 429: // Too Many Requests
		return withVerdict(class, VerdictRetry)
	}
	return withVerdict(class, VerdictTerminal)
}

// httpClasses are the classes from "http.400" to "http.599" in a row: one of them takes no memory.
var httpClasses = func() string {
	var b []byte
	for code := 400; code < 600; code++ {
		b = strconv.AppendInt(append(b, "http."...), int64(code), 10)
	}
	return string(b)
}()

// ofSQL decides by the class of the SQLSTATE, its first two characters. The names come from the SQL
// standard and from PostgreSQL's appendix A.
func ofSQL(state string) opinion {
	if len(state) != 5 || !ValidClass(state) {
		return opinion{}
	}
	v, ok := verdictOfSQL(state)
	return opinion{"sql." + state, v, ok}
}

func verdictOfSQL(state string) (v Verdict, ok bool) {
	switch state {
	case "25006", // read_only_sql_transaction: a replica, after a failover
		"55P03", // lock_not_available
		"57014": // query_canceled: by a timeout, or by a shutdown
		return VerdictRetry, true
	}
	switch state[:2] {
	case "08", // connection exception
		"40", // transaction rollback: serialization failure, deadlock
		"53", // insufficient resources
		"58": // system error: I/O
		return VerdictRetry, true
	case "57": // operator intervention
		return VerdictRetry, state[2] == 'P' // shutdown, crash, cannot connect now
	case "22", // data exception
		"23", // integrity constraint violation
		"42": // syntax error, undefined table, insufficient privilege
		return VerdictTerminal, true
	}
	return VerdictTerminal, false
}

// delayOf returns the wait that err itself asks for.
func delayOf(err error) (d time.Duration) {
	defer survive()
	return max(err.(retryAfter).RetryAfter(), 0)
}
