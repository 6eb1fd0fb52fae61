package consumer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/sidingkafka/siding/classify"
)

// A handler that returned context.Cause(ctx) after its timeout failed terminally, since the cause
// was a bare error.
func TestErrHandlerTimeout_AndErrDrainingByErrorsIs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err, is error
		class   string
	}{
		{ErrHandlerTimeout, context.DeadlineExceeded, classify.ClassTimeout},
		{ErrDraining, context.Canceled, classify.ClassCanceled},
	} {
		if !errors.Is(tt.err, tt.is) {
			t.Errorf("%v is not %v", tt.err, tt.is)
		}
		if r := new(classify.Classifier).Classify(fmt.Errorf("charge: %w", tt.err)); r.Verdict != classify.VerdictRetry || r.Class != tt.class {
			t.Errorf("%v is %v of class %q, want retry of class %q", tt.err, r.Verdict, r.Class, tt.class)
		}
	}
	if timeout, ok := errors.AsType[net.Error](ErrHandlerTimeout); !ok || !timeout.Timeout() {
		t.Errorf("%v is no timeout to those who ask by Timeout", ErrHandlerTimeout)
	}
}

// The user's ErrorText formats an error, and its panic does not end the consumer.
func TestTextOf_ErrorTextMayPanic(t *testing.T) {
	t.Parallel()
	var cfg Config
	if got := textOf(errors.New("card 4711"), "card 4711", cfg.ErrorText); got != "card 4711" {
		t.Errorf("got %q", got)
	}
	cfg.ErrorText = func(error) string { return "redacted" }
	if got := textOf(errors.New("card 4711"), "card 4711", cfg.ErrorText); got != "redacted" {
		t.Errorf("got %q", got)
	}
	cfg.ErrorText = func(err error) string { panic(err) }
	if got, want := textOf(errors.New("card 4711"), "card 4711", cfg.ErrorText), "no text for the error: Config.ErrorText panicked with a *errors.errorString"; got != want {
		t.Errorf("got %q, want %q, without what was to be redacted", got, want)
	}
	cfg.ErrorText = func(err error) string { return err.Error()[20:] }
	if got := textOf(errors.New("card 4711"), "card 4711", cfg.ErrorText); !strings.Contains(got, "slice bounds out of range") {
		t.Errorf("got %q, want Go's own panic, which helps to find the fault", got)
	}
}
