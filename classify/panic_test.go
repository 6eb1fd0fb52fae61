package classify

import (
	"errors"
	"fmt"
	"testing"
)

func TestPanic_FingerprintIgnoresTheLine(t *testing.T) {
	t.Parallel()
	c := new(Classifier)
	a := c.Classify(recovered(func() { explode(-1) })) // another line of the same function
	b := c.Classify(recovered(func() { explode(1) }))
	if a.Stack == b.Stack {
		t.Fatal("both panicked at the same line")
	}
	if a.Fingerprint != b.Fingerprint {
		t.Errorf("fingerprints %s and %s differ by the line only", a.Fingerprint, b.Fingerprint)
	}
	if d := c.Classify(recovered(func() { panic("record 1") })); d.Fingerprint == b.Fingerprint {
		t.Error("panics of two functions have the same fingerprint")
	}
}

func TestPanicError_ShowsItsValue(t *testing.T) {
	t.Parallel()
	cause := &skuError{4}
	err := error(&PanicError{Value: fmt.Errorf("x: %w", cause)})
	if !errors.Is(err, cause) {
		t.Error("errors.Is does not see the error that was passed to panic")
	}
	for _, tt := range []struct {
		value any
		want  string
	}{{"boom", "panic: boom"}, {7, "panic: 7"}, {nil, "panic: <nil>"}, {cause, "panic: unknown SKU 4"}} {
		if got := (&PanicError{Value: tt.value}).Error(); got != tt.want {
			t.Errorf("Error() = %q, want %q", got, tt.want)
		}
	}
}
