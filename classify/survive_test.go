package classify

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"
)

// hostile panics in every method that it has.
type hostile struct{}

func (hostile) Error() string             { panic("Error") }
func (hostile) Unwrap() error             { panic("Unwrap") }
func (hostile) Is(error) bool             { panic("Is") }
func (hostile) As(any) bool               { panic("As") }
func (hostile) StatusCode() int           { panic("StatusCode") }
func (hostile) SQLState() string          { panic("SQLState") }
func (hostile) GRPCStatus() *grpcStatus   { panic("GRPCStatus") }
func (hostile) RetryAfter() time.Duration { panic("RetryAfter") }
func (hostile) Callers() []uintptr        { panic("Callers") }
func (hostile) Timeout() bool             { panic("Timeout") }
func (hostile) Temporary() bool           { panic("Temporary") }

type hostileMany struct{}

func (hostileMany) Error() string   { return "many" }
func (hostileMany) Unwrap() []error { panic("Unwrap") }

type loop struct{}

func (l *loop) Error() string { return "loop" }
func (l *loop) Unwrap() error { return l }

// bush doubles at every level and never ends.
type bush struct{}

func (b bush) Error() string   { return "bush" }
func (b bush) Unwrap() []error { return []error{nil, b, b} }

type uncomparable struct{ _ []int }

func (uncomparable) Error() string { return "uncomparable" }

func TestHostileErrorsAreClassified(t *testing.T) {
	t.Parallel()
	var typedNil *skuError
	c := &Classifier{Rules: []Rule{
		Is(errors.New("other"), VerdictRetry, "other"),
		Is(uncomparable{}, VerdictRetry, "other"),
		Type[interface {
			error
			Missing()
		}](VerdictRetry, "other"),
		When(func(error) bool { panic("predicate") }, VerdictRetry, "other"),
	}}
	for _, tt := range []struct {
		err   error
		class string
	}{
		{hostile{}, "classify.hostile"},
		{&hostile{}, "classify.hostile"},
		{(*hostile)(nil), "classify.hostile"},
		{typedNil, "classify.skuError"},
		{(*PanicError)(nil), "unclassified"},
		{(*net.OpError)(nil), "net.OpError"},
		{hostileMany{}, "classify.hostileMany"},
		{&loop{}, "classify.loop"},
		{bush{}, "classify.bush"},
		{uncomparable{}, "classify.uncomparable"},
		{fmt.Errorf("x: %w", hostile{}), "classify.hostile"},
		{errors.Join(nil, hostile{}, errBare), "classify.hostile"},
		{&PanicError{Value: hostile{}}, "panic.classify.hostile"},
	} {
		got := c.Classify(tt.err)
		if got.Verdict != VerdictTerminal || got.Class != tt.class || len(got.Fingerprint) != 16 {
			t.Errorf("Classify(%T) = %+v, want terminal %s", tt.err, got, tt.class)
		}
	}
	// The marks around it and beside it still count.
	for _, r := range []Rule{
		Is(errBare, VerdictRetry, "known"),
		Type[*skuError](VerdictRetry, "known"),
	} {
		beside := errors.Join(hostile{}, errBare, &skuError{1})
		if got := (&Classifier{Rules: []Rule{r}}).Classify(beside); got.Verdict != VerdictRetry || got.Class != "known" {
			t.Errorf("Classify = %v %q, want retry, known", got.Verdict, got.Class)
		}
	}
	if got := c.Classify(As(Retryable(hostile{}), "known")); got.Verdict != VerdictRetry || got.Class != "known" {
		t.Errorf("Classify = %v %q, want retry, known", got.Verdict, got.Class)
	}
}

func TestDialThatWasCanceledIsCanceled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := new(net.Dialer).DialContext(ctx, "tcp", "127.0.0.1:1")
	if err == nil {
		t.Fatal("the dial succeeded")
	}
	if got := new(Classifier).Classify(err); got.Class != ClassCanceled || got.Verdict != VerdictRetry {
		t.Errorf("Classify(%v) = %v %q, want retry, canceled", err, got.Verdict, got.Class)
	}
}
