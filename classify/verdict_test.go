package classify

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestVerdict_MarksKeepTheErrorVisible(t *testing.T) {
	t.Parallel()
	cause := &skuError{4}
	inner := fmt.Errorf("order 7: %w", cause)
	for name, err := range map[string]error{
		"Retryable":  Retryable(inner),
		"Terminal":   Terminal(inner),
		"Discard":    Discard(inner),
		"RetryAfter": RetryAfter(inner, time.Second),
		"As":         As(inner, "orders.sku"),
	} {
		if !errors.Is(err, cause) {
			t.Errorf("%s: errors.Is does not see the cause", name)
		}
		if got, ok := errors.AsType[*skuError](err); !ok || got != cause {
			t.Errorf("%s: errors.As does not see the cause", name)
		}
		if errors.Unwrap(err) != inner {
			t.Errorf("%s: Unwrap = %v, want what was marked", name, errors.Unwrap(err))
		}
		if err.Error() != inner.Error() {
			t.Errorf("%s: message %q, want %q", name, err, inner)
		}
	}
}

// A handler can end with return classify.Retryable(call()).
func TestVerdict_MarksOfNilAreNil(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"Retryable":  Retryable(nil),
		"Terminal":   Terminal(nil),
		"Discard":    Discard(nil),
		"RetryAfter": RetryAfter(nil, time.Second),
		"As":         As(nil, "x"),
	} {
		if err != nil {
			t.Errorf("%s(nil) = %v, want nil", name, err)
		}
	}
	if got := new(Classifier).Classify(nil); got != (Result{}) {
		t.Errorf("Classify(nil) = %+v, want the zero Result", got)
	}
}

func TestRetryAfter_IsTheFirstDelayAskedFor(t *testing.T) {
	t.Parallel()
	limited := httpError{code: 429, after: 30 * time.Second}
	for _, tt := range []struct {
		name string
		err  error
		want time.Duration
	}{
		{"none", Retryable(errBare), 0},
		{"handler", RetryAfter(errBare, time.Minute), time.Minute},
		{"negative", RetryAfter(errBare, -time.Minute), 0},
		{"outermost", RetryAfter(RetryAfter(errBare, time.Hour), time.Minute), time.Minute},
		{"under a verdict that agrees", Retryable(RetryAfter(errBare, time.Minute)), time.Minute},
		{"under one that does not", Terminal(RetryAfter(errBare, time.Minute)), 0},
		{"header", fmt.Errorf("call: %w", limited), 30 * time.Second},
		{"header under a mark", As(Retryable(limited), "pay.busy"), 30 * time.Second},
		{"handler before header", RetryAfter(limited, time.Minute), time.Minute},
		{"header of a terminal one", httpError{code: 404, after: time.Second}, 0},
		{"negative header", httpError{code: 503, after: -1}, 0},
	} {
		if got := new(Classifier).Classify(tt.err).RetryAfter; got != tt.want {
			t.Errorf("%s: RetryAfter = %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestVerdict_String(t *testing.T) {
	t.Parallel()
	for v, want := range map[Verdict]string{
		VerdictTerminal: "terminal", VerdictRetry: "retry", VerdictDiscard: "discard", 9: "verdict(9)",
	} {
		if got := v.String(); got != want {
			t.Errorf("Verdict(%d) = %q, want %q", uint8(v), got, want)
		}
	}
}
