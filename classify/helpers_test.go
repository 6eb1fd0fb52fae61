package classify

import (
	"errors"
	"fmt"
	"regexp"
	"time"
)

var sink Result

var classFormat = regexp.MustCompile(`^[A-Za-z0-9_.*/-]{1,128}$`)

type skuError struct{ id int }

func (e *skuError) Error() string { return fmt.Sprintf("unknown SKU %d", e.id) }

type httpError struct {
	code  int
	after time.Duration
}

func (e httpError) Error() string { return fmt.Sprintf("status %d", e.code) }

func (e httpError) StatusCode() int { return e.code }

func (e httpError) RetryAfter() time.Duration { return e.after }

type smithyError struct{ code int }

func (e *smithyError) Error() string { return "response error" }

func (e *smithyError) HTTPStatusCode() int { return e.code }

type gaxError struct{ code int }

func (e *gaxError) Error() string { return "api error" }

func (e *gaxError) HTTPCode() int { return e.code }

type pgError struct{ state string }

func (e *pgError) Error() string { return "ERROR (SQLSTATE " + e.state + ")" }

func (e *pgError) SQLState() string { return e.state }

type (
	grpcCode   uint32
	grpcStatus struct{ c grpcCode }
)

type grpcError struct{ s *grpcStatus }

func (e *grpcError) Error() string { return "rpc error" }

func (e *grpcError) GRPCStatus() *grpcStatus { return e.s }

// grpcLike has a status that is an interface.
type grpcLike struct{ s *grpcStatus }

func (e grpcLike) Error() string { return "rpc error" }

func (e grpcLike) GRPCStatus() interface{ Code() grpcCode } { return e.s }

var errBare = errors.New("bare")

// hostile panics in every method that it has.
type hostile struct{}

func (hostile) Error() string { panic("Error") }

func (hostile) Unwrap() error { panic("Unwrap") }

func (hostile) Is(error) bool { panic("Is") }

func (hostile) As(any) bool { panic("As") }

func (hostile) StatusCode() int { panic("StatusCode") }

func (hostile) SQLState() string { panic("SQLState") }

func (hostile) GRPCStatus() *grpcStatus { panic("GRPCStatus") }

func (hostile) RetryAfter() time.Duration { panic("RetryAfter") }

func (hostile) Callers() []uintptr { panic("Callers") }

func (hostile) Timeout() bool { panic("Timeout") }

func (hostile) Temporary() bool { panic("Temporary") }

type hostileMany struct{}

func (hostileMany) Error() string { return "many" }

func (hostileMany) Unwrap() []error { panic("Unwrap") }

type loop struct{}

func (l *loop) Error() string { return "loop" }

func (l *loop) Unwrap() error { return l }

// bush doubles at every level and never ends.
type bush struct{}

func (b bush) Error() string { return "bush" }

func (b bush) Unwrap() []error { return []error{nil, b, b} }

type uncomparable struct{ _ []int }

func (uncomparable) Error() string { return "uncomparable" }

func (s *grpcStatus) Code() grpcCode {
	if s == nil {
		return 0
	}
	return s.c
}
